"""Commands that can be stopped at any time: how they end, and what they print then."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = "Stopped. What is done is kept: run the same command again to go on."


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let a polite request to end (SIGTERM, a closed terminal) stop a run as Ctrl-C does: in order.

    A signal that was ignored before stays ignored: under ``nohup`` a closed terminal stops nothing.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
