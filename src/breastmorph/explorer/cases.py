"""What one tab holds: a case for every open scan, every step so that it can be undone, large values on the disk."""

from __future__ import annotations

import dataclasses
import math
import re
import secrets
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from breastmorph.explorer.answers import bad_request, not_now

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Edited
    from breastmorph.explorer.model_view import ModelView, NamedShape
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.picking import Picks
    from breastmorph.explorer.predicting import Predicted
    from breastmorph.explorer.proposing import Proposal

# --------------------------------------------------------------------------------------------------------------------
# Large values that are not looked at rest on the disk: a tab may hold any number of scans in the same memory
# --------------------------------------------------------------------------------------------------------------------

T = TypeVar("T")
_SMALL = 4096  # bytes that are not worth a file


@dataclass(frozen=True)
class _Hole:
    """Where an array was taken out of a value."""

    index: int
    of_bytes: bool = False
    writeable: bool = False


def _parted(value: Any, arrays: list[np.ndarray]) -> Any:
    """The same value with holes for its arrays, which are appended to ``arrays``."""
    if isinstance(value, np.ndarray) and value.nbytes >= _SMALL and not value.dtype.hasobject:
        arrays.append(value)
        return _Hole(len(arrays) - 1, writeable=value.flags.writeable)
    if isinstance(value, bytes) and len(value) >= _SMALL:
        arrays.append(np.frombuffer(value, np.uint8))
        return _Hole(len(arrays) - 1, of_bytes=True)
    return _rebuilt(value, lambda one: _parted(one, arrays))


def _joined(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """The value again, from what :func:`_parted` left of it."""
    if not isinstance(value, _Hole):
        return _rebuilt(value, lambda one: _joined(one, arrays))
    found = arrays[value.index]
    if value.of_bytes:
        return found.tobytes()
    found.flags.writeable = value.writeable
    return found


def _rebuilt(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value with all its parts changed; without checks, as these were right before."""
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, _Hole)):
        shell = object.__new__(type(value))
        for one in dataclasses.fields(value):
            object.__setattr__(shell, one.name, change(getattr(value, one.name)))
        return shell
    if type(value) is tuple or type(value) is list:
        return type(value)(change(one) for one in value)
    if type(value) is dict:
        return {name: change(one) for name, one in value.items()}
    return value


@dataclass(frozen=True)
class _Place:
    """Where arrays lie in a shelf's file: the bytes of each, one behind the other."""

    start: int
    parts: tuple[tuple[np.dtype[Any], tuple[int, ...]], ...]

    @property
    def sizes(self) -> list[int]:
        """Bytes of every array."""
        return [dtype.itemsize * math.prod(shape) for dtype, shape in self.parts]

    @property
    def end(self) -> int:
        return self.start + sum(self.sizes)


class Boxed(Generic[T]):
    """A value that never changes, in memory or on the disk; made by :meth:`Shelf.put`."""

    def __init__(self, shelf: Shelf, value: T) -> None:
        arrays: list[np.ndarray] = []
        self._skeleton = _parted(value, arrays)
        self.size = sum(one.nbytes for one in arrays)
        self._shelf, self.token = shelf, secrets.token_hex(8)  # what tells it from others
        self._value: T | None = value
        self._place: _Place | None = None
        self._lock = threading.Lock()

    @property
    def value(self) -> T:
        """The value; read again where it rested on the disk."""
        with self._lock:
            if self._value is None and self._place is not None:
                self._value = cast("T", _joined(self._skeleton, self._shelf.fetched(self._place)))
            found = cast("T", self._value)
        self._shelf.used(self)
        return found

    def rest(self) -> None:
        """Leave the memory."""
        with self._lock:
            if self._value is None:
                return
            if self._place is None:
                arrays: list[np.ndarray] = []
                _parted(self._value, arrays)
                self._place = self._shelf.stored(arrays)
                weakref.finalize(self, self._shelf.freed, self._place)
            self._value = None


class Shelf:
    """Where large values of a session stand: the ones used last in memory, the others in a file without a name.

    The system frees such a file with the process, however that ends: nothing of a patient stays behind.

    Parameters
    ----------
    folder : Path
        Exists, and only this user can read it.
    most : int
        Bytes of arrays in memory; the value that is used now may be larger.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._most = most
        self._file = tempfile.TemporaryFile(dir=folder, prefix="shelf-")  # noqa: SIM115  (until the session ends)
        self._places: list[tuple[int, int]] = []  # begin and end of what is stored, in order
        self._gone: list[_Place] = []
        self._filing = threading.Lock()
        self._awake: dict[int, weakref.ref[Boxed[Any]]] = {}  # the one used last stands last
        self._lock = threading.Lock()

    def put(self, value: T) -> Boxed[T]:
        """Keep a value; its file goes when nobody holds the box any more."""
        box = Boxed(self, value)
        self.used(box)
        return box

    def stored(self, arrays: Sequence[np.ndarray]) -> _Place:
        """Write arrays into the first gap that holds them."""
        parts = tuple((one.dtype, one.shape) for one in arrays)
        size, start = sum(one.nbytes for one in arrays), 0
        with self._filing:
            self._clear()
            for begin, end in self._places:
                if begin - start >= size:
                    break
                start = end
            place = _Place(start, parts)
            self._places = sorted([*self._places, (place.start, place.end)])
            self._file.seek(start)
            for one in arrays:
                self._file.write(np.ascontiguousarray(one).data)
            self._file.flush()
        return place

    def fetched(self, place: _Place) -> list[np.ndarray]:
        """What was stored there."""
        found = []
        with self._filing:
            self._file.seek(place.start)
            for (dtype, shape), size in zip(place.parts, place.sizes, strict=True):
                content = bytearray(size)
                self._file.readinto(content)
                found.append(np.frombuffer(content, dtype).reshape(shape))
        return found

    def freed(self, place: _Place) -> None:
        """Nobody holds it any more. Called by the collector, at any moment: whoever is at the file now clears it."""
        self._gone.append(place)
        if self._filing.acquire(blocking=False):
            try:
                self._clear()
            finally:
                self._filing.release()

    def _clear(self) -> None:
        """Write over what was freed, or cut it off at the end of the file."""
        while self._gone and not self._file.closed:
            place = self._gone.pop()
            self._places.remove((place.start, place.end))
            last = self._places[-1][1] if self._places else 0
            if last <= place.start:
                self._file.truncate(last)
            else:
                self._file.seek(place.start)
                self._file.write(bytes(place.end - place.start))
                self._file.flush()

    def close(self) -> None:
        """Give everything back."""
        with self._filing:
            self._file.close()

    def used(self, box: Boxed[Any]) -> None:
        """A value was looked at: others may have to rest."""
        with self._lock:
            self._awake.pop(id(box), None)
            held = [(key, one) for key, ref in self._awake.items() if (one := ref()) is not None]
            room, resting = self._most - box.size, []
            self._awake = {}
            for key, one in reversed(held):
                room -= one.size
                if room >= 0:
                    self._awake[key] = weakref.ref(one)
                else:
                    resting.append(one)
            self._awake = dict(reversed(self._awake.items())) | {id(box): weakref.ref(box)}
        for one in resting:
            one.rest()


# --------------------------------------------------------------------------------------------------------------------
# A case: one open scan with what was made of it
# --------------------------------------------------------------------------------------------------------------------

# Key of the case that a request is about, and whatever job it starts: a tab may have gone on to another scan by the
# time that it is answered, and one patient's numbers must never come for another's. None: the case worked on.
ABOUT: ContextVar[str | None] = ContextVar("about", default=None)

_LONGEST = 80  # letters of a name
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d{2})[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")


@dataclass(frozen=True)
class Case:
    """One open scan, or what is done without one (its key is empty then).

    Attributes
    ----------
    key : str
        Of the scan.
    name : str
        What people call it.
    person : str
        Visits of one person share it; empty where nobody has said who it is.
    day : str
        Of the visit, as 2026-01-31; empty where it is not known.
    patient, edited, predicted : Boxed, optional
        What was made of it.
    """

    key: str = ""
    name: str = ""
    person: str = ""
    day: str = ""
    patient: Boxed[ShownPatient] | None = None
    edited: Boxed[Edited] | None = None
    predicted: Boxed[Predicted] | None = None

    def as_record(self, picks: Picks | None, thumbnail: str) -> dict[str, Any]:
        """A row of the page's list; nothing that rests is read for it."""
        return {
            "scan": self.key,
            "name": self.name,
            "person": self.person,
            "day": self.day,
            "points": len(picks.points) if picks is not None else 0,
            "complete": picks is not None and picks.complete,
            "confirmed": picks is not None and (picks.confirmed or not picks.found),
            "doubts": len(picks.landmarks.doubtful) if picks is not None else 0,
            "absent_side": picks.absent_side if picks is not None else "",
            "computed": self.patient is not None,
            "edited": self.edited is not None,
            "predicted": self.predicted is not None,
            "thumbnail": thumbnail,
        }

    def renamed(self, asked: Mapping[str, Any]) -> Case:
        """With what a request says of ``name``, ``person`` and ``day``."""
        name, person, day = (asked.get(one, getattr(self, one)) for one in ("name", "person", "day"))
        if not all(isinstance(one, str) for one in (name, person, day)):
            raise bad_request("a name is a text")
        name, person = (
            "".join(c for c in one if c.isprintable()).strip()[:_LONGEST] for one in (name, person)
        )
        if not name:
            raise bad_request("a scan needs a name", "Type one")
        if day and (_DAY.fullmatch(day) is None or not _is_day(day)):
            raise bad_request(f"{day[:20]} is no date", "Type year, month and day")
        return replace(self, name=name, person=person, day=day)


def day_in(name: str) -> str:
    """The date that a file's name holds, as scanners write it there; empty without one."""
    found = _IN_NAME.search(name)
    day = "-".join(found.groups()) if found is not None else ""
    return day if day and _is_day(day) else ""


def _is_day(day: str) -> bool:
    try:
        return time.strptime(day, "%Y-%m-%d") is not None
    except ValueError:
        return False


# --------------------------------------------------------------------------------------------------------------------
# Every step, so that it can be undone and done again
# --------------------------------------------------------------------------------------------------------------------

_STEPS = 200


@dataclass(frozen=True)
class Room:
    """All that a tab works on, at one moment.

    Attributes
    ----------
    cases : mapping from key to Case
        In the order in which they were opened; the one without a scan is always there.
    current : str
        Key of the one that is worked on.
    marks : mapping from key to (Picks, Proposal or None)
        Landmarks of every scan.
    notes : str
        The page's own, as JSON: sliders, wishes, what is painted, how scans are turned.
    kept : Boxed, optional
        The shape to compare with, as it was then.
    kept_of : str
        Key of the case it belongs to.
    view : ModelView, optional
        The model with landmarks that were picked here.
    """

    cases: Mapping[str, Case] = field(default_factory=lambda: {"": Case()})
    current: str = ""
    marks: Mapping[str, tuple[Picks, Proposal | None]] = field(default_factory=dict)
    notes: str = "{}"
    kept: Boxed[NamedShape] | None = None
    kept_of: str = ""
    view: ModelView | None = None

    def without(self, key: str) -> Room:
        """Without a case; another one is worked on where it was this."""
        cases = {one: case for one, case in self.cases.items() if one != key}
        marks = {one: mark for one, mark in self.marks.items() if one != key}
        current = list(cases)[-1] if self.current == key else self.current
        forgotten = {"kept": None, "kept_of": ""} if self.kept_of == key else {}
        return replace(self, cases=cases, marks=marks, current=current, **cast("Any", forgotten))


class History:
    """Rooms before and after, each with the name of the step that leads from one to the next."""

    def __init__(self) -> None:
        self._past: list[tuple[str, Room]] = []
        self._future: list[tuple[str, Room]] = []
        self._revision = 0

    def note(self, what: str, before: Room) -> None:
        """A step was made."""
        self._past = [*self._past, (what, before)][-_STEPS:]
        self._future = []
        self._revision += 1

    def back(self, now: Room) -> tuple[str, Room]:
        """The last step, and the room before it."""
        if not self._past:
            raise not_now("there is nothing to undo", "Change something first", code="nothing-to-undo")
        what, room = self._past.pop()
        self._revision += 1
        self._future.append((what, now))
        return what, room

    def forth(self, now: Room) -> tuple[str, Room]:
        """The step that was undone last, and the room after it."""
        if not self._future:
            raise not_now("there is nothing to do again", "Undo something first", code="nothing-to-redo")
        what, room = self._future.pop()
        self._revision += 1
        self._past.append((what, now))
        return what, room

    def forget(self, key: str, now: Room) -> None:
        """A case is gone for good: no room may bring it back."""
        # A step that was about this case alone leads nowhere any more.
        rooms = [room.without(key) for _, room in self._past] + [now]
        self._past = [(what, rooms[k]) for k, (what, _) in enumerate(self._past) if rooms[k] != rooms[k + 1]]
        rooms = [room.without(key) for _, room in self._future] + [now]
        self._future = [
            (what, rooms[k]) for k, (what, _) in enumerate(self._future) if rooms[k] != rooms[k + 1]
        ]

    def keys(self) -> set[str]:
        """Of all cases that a step could bring back."""
        return {key for _, room in (*self._past, *self._future) for key in room.cases}

    def as_record(self) -> dict[str, Any]:
        """What would be undone and done again, for the page."""
        return {
            "undo": self._past[-1][0] if self._past else None,
            "redo": self._future[-1][0] if self._future else None,
            "revision": self._revision,
        }
