"""Running one function over many items in local processes.

An item whose process crashes, hangs or asks for too much memory fails alone: its process is ended and replaced, and
the rest goes on. (``concurrent.futures`` loses the whole pool with one crashed process and cannot end a hanging one.)
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import memory_share

Item = TypeVar("Item")
Result = TypeVar("Result")
Setup = Callable[[], Callable[[Item], Result]]

# A fresh interpreter: a forked one would inherit threads and locks of the libraries in an unknown state.
_SPAWN = multiprocessing.get_context("spawn")
_ONE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_STARTS = (
    3  # processes that may die one after the other while starting: then something is wrong with all of them
)
_PATIENCE = 5.0  # seconds an idle process has to end by itself
_environment = threading.Lock()


@dataclass(frozen=True)
class Limits:
    """What one item may use.

    Attributes
    ----------
    seconds : float, optional
        Time of one item; no limit when not given.
    memory : int, optional
        Bytes of one process; a fair share of the machine's memory when not given.
    """

    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Failure:
    """Why an item has no result.

    Attributes
    ----------
    reason : str
        In plain words.
    code : {"error", "crashed", "time-limit", "memory-limit"}
    error : Exception, optional
        What the function raised, for code "error".
    """

    reason: str
    code: str
    error: Exception | None = None


def run_each(
    setup: Setup[Item, Result], items: Iterable[Item], jobs: int, limits: Limits | None = None
) -> Generator[tuple[Item, Result | Failure], None, None]:
    """Run a function on every item in local processes.

    Parameters
    ----------
    setup : callable
        Runs once in every process and returns the function for the items. Must be picklable, like items and
        results.
    items : iterable
    jobs : int
        Processes, each with one thread for linear algebra.
    limits : Limits, optional

    Yields
    ------
    item, result
        As they are finished; a Failure in place of a result that does not exist.

    Raises
    ------
    BreastMorphError
        Processes cannot be started; or whatever ``setup`` raises.
    """
    limits = limits or Limits()
    limits = Limits(limits.seconds, limits.memory or memory_share(jobs))
    waiting = deque(items)
    pool: list[Worker[Item, Result]] = []
    failed_starts = 0
    try:
        while waiting or any(worker.busy for worker in pool):
            wanted = min(jobs, len(waiting) + sum(worker.busy for worker in pool))
            pool += [Worker(setup, limits) for _ in range(wanted - len(pool))]
            for worker in pool:
                if waiting and worker.idle and worker.give(waiting[0]):
                    waiting.popleft()
            for worker in _wait_for_any(pool):
                if worker.busy:
                    item = worker.item
                    yield item, worker.answer()
                elif worker.ready():
                    failed_starts = 0
                else:
                    failed_starts += 1
                    if failed_starts == _STARTS:
                        raise worker.cannot_start()
            pool = [worker for worker in pool if not worker.ended]
    finally:
        idle = [worker for worker in pool if worker.idle]
        for worker in pool:
            worker.release()
        for worker in pool:
            worker.end(_PATIENCE if worker in idle else 0.0)


class Worker(Generic[Item, Result]):
    """One process that runs a function on items given one after the other.

    Parameters
    ----------
    setup : callable
        See :func:`run_each`.
    limits : Limits
    """

    def __init__(self, setup: Setup[Item, Result], limits: Limits) -> None:
        self.limits = limits
        self.idle = self.busy = self.ended = False
        self.item: Any = None
        self._deadline: float | None = None
        self.connection, theirs = _SPAWN.Pipe()
        # Processes of a Dask worker are daemonic, and those may not have children. That rule is there so that no
        # child is left behind; ours end with their parent in any case (see _end_with_parent).
        multiprocessing.current_process().daemon = False
        # What is defined in the user's own script can only be used by a process that runs the script too.
        own = nullcontext() if _of_script(setup) else _without_script()
        with _one_thread_each(), _undisturbed(), own:
            self._process = _SPAWN.Process(target=_serve, args=(theirs, setup, limits.memory), daemon=True)
            self._process.start()
        theirs.close()

    def ready(self) -> bool:
        """Wait until the process is ready for items; False when it died before. Raises what ``setup`` raised."""
        kind, value = self._receive()
        self.idle = kind == "ready"
        if kind == "unfit":
            raise self.cannot_start() if isinstance(value, MemoryError) else value
        return self.idle

    def give(self, item: Item) -> bool:
        """Start with an item; the time limit counts from here. False when the process has ended."""
        try:
            self.connection.send(item)
        except OSError:
            self.end()
            return False
        self.idle, self.busy, self.item = False, True, item
        self._deadline = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        return True

    def seconds_left(self) -> float | None:
        """Until the item's time limit; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def answer(self) -> Result | Failure:
        """Wait for the item's result, at most until its time limit."""
        answered = self.connection.poll(self.seconds_left())
        kind: str
        value: Any
        kind, value = self._receive() if answered else ("overdue", None)
        self.idle, self.busy, self.item, self._deadline = True, False, None, None
        if kind == "done":
            result: Result = value
            return result
        if kind == "error":
            return Failure(f"{type(value).__name__}: {value}", "error", value)
        self.end()
        if kind == "overdue":
            return Failure(f"it took longer than the time limit of {self.limits.seconds:g} s", "time-limit")
        if kind == "memory":
            return Failure(f"it needed more memory than {self._allowed()}", "memory-limit")
        return Failure(self._cause_of_end(), "crashed")

    def run(self, item: Item) -> Result | Failure:
        """One item from start to end, for a caller that has nothing else to do meanwhile."""
        if not self.idle and not self.ready():
            raise self.cannot_start()
        if not self.give(item):
            return Failure(self._cause_of_end(), "crashed")
        return self.answer()

    def release(self) -> None:
        """Let the process end when it has nothing to do."""
        self.connection.close()
        self.idle, self.ended = False, True

    def end(self, patience: float = 0.0) -> None:
        """End the process, by force when it does not end by itself within ``patience`` seconds."""
        self.release()
        self._process.join(patience)
        self._process.kill()
        self._process.join()

    def cannot_start(self) -> BreastMorphError:
        """The error for a process that did not become ready."""
        return BreastMorphError(
            "worker processes cannot be started: {cause_of_end}",
            "Each may use {allowed}; give more, or take fewer processes. In a script of your own, "
            'start under `if __name__ == "__main__":`',
            cause_of_end=self._cause_of_end(),
            allowed=self._allowed(),
        )

    def _receive(self) -> tuple[str, Any]:
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError):  # it died, perhaps in the middle of a word
            self._process.join(_PATIENCE)
            self.end()
            return "died", None
        return kind, value

    def _cause_of_end(self) -> str:
        code = self._process.exitcode
        if code == -9:
            return "the process was killed from outside, mostly because the machine ran out of memory"
        if code is not None and code < 0:
            return f"the process crashed ({_signal_name(-code)})"
        return f"the process ended unexpectedly (exit code {code})"

    def _allowed(self) -> str:
        memory = self.limits.memory
        return "the memory there is" if memory is None else f"{memory / 2**30:.2g} GB of memory"


def _wait_for_any(pool: Sequence[Worker[Item, Result]]) -> list[Worker[Item, Result]]:
    """Wait for processes that sent something or whose item is overdue."""
    waited = {worker.connection: worker for worker in pool if not (worker.idle or worker.ended)}
    left = [seconds for worker in waited.values() if (seconds := worker.seconds_left()) is not None]
    sent = wait(list(waited), min(left, default=None)) if waited else []
    return [worker for pipe, worker in waited.items() if pipe in sent or worker.seconds_left() == 0.0]


def _serve(connection: Connection, setup: Setup[Item, Result], memory: int | None) -> None:
    """The life of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    if os.name == "posix":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    _end_with_parent()
    _limit(memory)
    try:
        work = setup()
    except Exception as error:
        with suppress(OSError):  # the parent has ended
            connection.send(("unfit", _portable(error)))
        return
    with suppress(OSError):
        connection.send(("ready", None))
    while True:
        try:
            answer: tuple[str, Any] = "done", work(connection.recv())
        except EOFError:
            return
        except MemoryError:
            answer = "memory", None
        except Exception as error:
            answer = "error", _portable(error)
        try:
            connection.send(answer)
        except OSError:
            return
        except Exception as error:  # a result that cannot be pickled
            connection.send(("error", _portable(error)))


def _end_with_parent() -> None:
    """End this process when its parent has ended, even in the middle of an item."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def watch() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


def _limit(memory: int | None) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a night of crashes must not fill the disk
    # RLIMIT_DATA counts what a process really allocates; RLIMIT_AS also libraries and mapped files.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    if memory is not None:
        with suppress(OSError, ValueError):  # systems that do not know the limit, or have a stricter one
            resource.setrlimit(kind, (memory, memory))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")  # short of memory, the system should end a worker and not the whole run


def _portable(error: Exception) -> Exception:
    try:
        copy: Exception = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return copy


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A process started inside begins in peace: a request to end waits, and Ctrl-C does not reach the new process.

    One that is interrupted while it starts, or whose parent is, could only print a traceback on the terminal.
    """
    late: list[int] = []
    with ExitStack() as after:
        if threading.current_thread() is threading.main_thread():
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                number = getattr(signal, name, None)  # Windows has no SIGHUP
                if number is not None and callable(handler := signal.getsignal(number)):
                    signal.signal(number, lambda number, _: late.append(number))
                    after.callback(signal.signal, number, handler)
        if os.name == "posix":
            resource_tracker.ensure_running()  # would unblock it
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            after.callback(signal.pthread_sigmask, signal.SIG_SETMASK, blocked)
        yield
    for number in late:
        signal.raise_signal(number)


def _of_script(value: Any) -> bool:
    """Whether a value, or one inside it, is defined in the user's script.

    Looked at, not pickled: a folder's lock must be handed on only to the process that it is meant for.
    """
    if "__main__" in (type(value).__module__, getattr(value, "__module__", "")):
        return True
    parts: Iterable[Any] = ()
    if isinstance(value, partial):
        parts = (value.func, *value.args, *value.keywords.values())
    elif is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in fields(value))
    elif isinstance(value, (list, tuple, set)):
        parts = value
    elif isinstance(value, Mapping):
        parts = value.values()
    return any(map(_of_script, parts))


@contextmanager
def _without_script() -> Iterator[None]:
    """Processes started inside do not run the user's script once more, as Python's usually do.

    So a script of three lines needs no ``if __name__ == "__main__":``.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {
        name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)
    }
    main.__spec__ = None
    try:
        yield
    finally:
        vars(main).update(hidden)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes started inside inherit an environment that keeps linear algebra on one thread."""
    with _environment:
        before = {name: os.environ.get(name) for name in _ONE_THREAD}
        os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
