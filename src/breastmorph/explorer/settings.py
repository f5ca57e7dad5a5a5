"""How an explorer is run: where it listens, and what visitors may use."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from breastmorph.foundation.machine import memory_share
from breastmorph.foundation.workers import Limits

MEGABYTE = 1024**2
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - all addresses, and which of them is this computer
READERS = 2  # files that are read at a time: a slow one must not hold up another tab
_MOST_MEMORY = 6 * 1024**3  # bytes


@dataclass(frozen=True)
class Settings:
    """All that can be set.

    Attributes
    ----------
    model : Path, optional
        A model file; the demo model when not given.
    folder : Path, optional
        Scans to pick landmarks on.
    propose : bool
        Whether the program looks for landmarks before a person sets them.
    host, port
        The address to listen on; port 0 takes a free one.
    patience : float
        Seconds in which a client must send ``slowest`` bytes for each of them, or the whole request.
    max_connections : int
        Beyond these, the one that has been silent longest is closed.
    """

    model: Path | None = None
    folder: Path | None = None
    propose: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    max_upload: int = 500 * MEGABYTE
    max_json: int = 4 * MEGABYTE
    max_landmarks: int = 16 * MEGABYTE
    max_sessions: int = 16  # tabs
    max_scans: int = 100  # open in one session
    max_shown_faces: int = 220_000  # a finer scan is shown with fewer triangles
    idle: float = 3600.0  # seconds after which a session whose page asks nothing ends
    patience: float = 20.0
    slowest: int = 1000  # bytes in a second
    max_connections: int = 100
    modes: int = 12  # sent to the page
    reading: Limits = field(default_factory=lambda: Limits(seconds=120.0, memory=_reading_memory()))
    computing: Limits = field(default_factory=lambda: Limits(seconds=600.0))


def _reading_memory() -> int:
    """Bytes that reading one file may take, so that two can be read at a time beside everything else."""
    share = memory_share(READERS + 1)
    return _MOST_MEMORY if share is None else min(_MOST_MEMORY, share)


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
