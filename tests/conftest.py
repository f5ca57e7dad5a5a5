"""What all tests start from, on whatever machine: what property tests draw, Ctrl-C, the terminal, a browser."""

import os
import signal

import pytest
from hypothesis import settings

from browser import open_browser

# The same cases in every run of `make test`, new ones in `make fuzz`.
settings.register_profile("same", max_examples=40, deadline=None, derandomize=True, database=None)
settings.register_profile("new", max_examples=1000, deadline=None)
settings.load_profile("same")

# A shell's `make test &` starts with Ctrl-C ignored. Processes that tests start would inherit that, and never stop.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Build services often set these; output of commands would then be coloured, or cut at another width.
for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES", "TERM"):
    os.environ.pop(name, None)


@pytest.fixture(scope="module")
def browser():
    with open_browser() as found:
        yield found
