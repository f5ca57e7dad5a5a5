"""What can be done with BreastMorph, each use case composed once: a frozen request, a frozen result, one function.

Commands, Python functions and the explorer's routes parse what they were given into the request, call the function and
present the result. Nothing here knows options, HTTP or the words in which a result is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

# Is called with the number of items; the value of the context is called once per finished item.
Progress = Callable[[int], AbstractContextManager[Callable[[], None]]]
# The same, called with what is done and the number of items.
Steps = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


def no_progress(total: int) -> AbstractContextManager[Callable[[], None]]:
    """Progress that is not shown."""
    return nullcontext(lambda: None)


def no_steps(what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """Steps that are not shown."""
    return nullcontext(lambda: None)
