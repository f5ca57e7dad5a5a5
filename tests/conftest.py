"""What the property tests draw: the same cases in every run of `make test`, new ones in `make fuzz`."""

from hypothesis import settings

settings.register_profile("same", max_examples=40, deadline=None, derandomize=True, database=None)
settings.register_profile("new", max_examples=3000, deadline=None)
settings.load_profile("same")
