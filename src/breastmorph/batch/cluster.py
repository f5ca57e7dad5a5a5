"""Registration on an existing Dask cluster: workers compute, the caller writes, so storage need not be shared.

The recipe with the template goes to every worker once, also to those that join later. A worker reads a scan from its
path where it sees the same file there, else the caller sends the content. Dask hands scans of lost workers to others.
On a worker each scan runs in a child process, so that it can be stopped and cannot take the worker with it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from breastmorph import __version__
from breastmorph.batch.executors import TIME_LIMIT, Outcomes, failed_scan
from breastmorph.batch.product import FailedScan, Hashes, Product, ProductMaker, Recipe, input_hashes
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import read_bytes
from breastmorph.foundation.language import N_
from breastmorph.foundation.locks import FolderLock
from breastmorph.foundation.machine import memory_share
from breastmorph.foundation.text import name_of
from breastmorph.foundation.workers import Failure, Limits, Worker
from breastmorph.scan.check import ScanFiles

try:
    import dask
    from distributed import Client, KilledWorker, WorkerPlugin, as_completed, get_worker
except ImportError as missing:
    raise BreastMorphError(
        "Dask is not installed", "Install it with: pip install 'breastmorph[cluster]'"
    ) from missing

_CONNECTING = 10.0  # seconds
_AHEAD = 2  # scans submitted per thread of the cluster: enough to keep it busy, few enough for the memory
_RECOUNT = 5.0  # seconds between two looks at the size of the cluster
_IDLE = 60.0  # seconds after which a worker without scans frees its memory
_AGAIN = N_("Run the same command again to go on: what is done is kept")


@dataclass(frozen=True)
class Cluster:
    """Workers of a Dask cluster.

    Attributes
    ----------
    scheduler : str
        Its address, for example "tcp://host:8786".
    limits : Limits
        Of one scan.
    """

    scheduler: str
    limits: Limits = field(default_factory=lambda: Limits(TIME_LIMIT))

    def run(
        self, recipe: Recipe, todo: Sequence[ScanFiles], folder: RegisteredFolder, lock: FolderLock
    ) -> Outcomes:
        """See :class:`breastmorph.batch.executors.Executor`."""
        with _connected(self.scheduler) as client, _equipped(client, recipe, self.limits) as plugin:
            for product in _products(client, plugin, todo):
                yield folder.store(product)


@dataclass(frozen=True)
class _Task:
    """A scan on its way to a worker.

    Attributes
    ----------
    files : ScanFiles
        With absolute paths.
    inputs : dict
        Hashes of the files by name, as the caller sees them.
    contents : tuple of bytes
        Of the files, where workers do not see them.
    """

    files: ScanFiles
    inputs: Hashes
    contents: tuple[bytes, ...] = ()


_Answer = Product | FailedScan | Failure | None  # None: the worker does not see the file, or sees another one


def _products(
    client: Client, plugin: str, todo: Sequence[ScanFiles]
) -> Generator[Product | FailedScan, None, None]:
    waiting = deque(todo)
    finished = as_completed(loop=client.loop)
    on_the_way: dict[Any, _Task] = {}
    stream = False  # whether the caller sends the content of the files
    most, counted = 0, float("-inf")

    def submit(task: _Task) -> None:
        future = client.submit(_on_worker, plugin, task, key=f"{task.files.id}-{secrets.token_hex(8)}")
        on_the_way[future] = task
        finished.add(future)

    try:
        while True:
            if time.monotonic() > counted + _RECOUNT:
                most, counted = max(1, _AHEAD * sum(client.nthreads().values())), time.monotonic()
            while waiting and len(on_the_way) < most:
                files = waiting.popleft()
                try:
                    submit(_task(files, stream))
                except FileProblem as error:
                    yield FailedScan.of(files, error)
            if not on_the_way:
                return
            future = next(finished)
            task = on_the_way.pop(future)
            answer = _answer(future)
            if answer is None:
                stream = True
                waiting.appendleft(task.files)
            else:
                yield failed_scan(task.files, answer, task.inputs) if isinstance(answer, Failure) else answer
    except Exception as error:
        if isinstance(error, (CancelledError, OSError)) or client.status != "running":
            raise BreastMorphError(
                "the connection to the cluster was lost ({why})", _AGAIN, why=str(error)
            ) from error
        raise
    finally:
        with suppress(Exception):  # the connection may be what failed
            client.cancel(list(on_the_way), force=True)


def _task(files: ScanFiles, stream: bool) -> _Task:
    there = files.moved(Path.absolute)
    if not stream:
        return _Task(there, input_hashes(there))
    contents = tuple(map(read_bytes, there.paths))
    names = (name_of(path.name) for path in there.paths)
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in zip(names, contents, strict=True)}
    return _Task(there, hashes, contents)


def _answer(future: Any) -> _Answer:
    try:
        answer: _Answer = future.result()
    except KilledWorker as error:
        return Failure(f"{error.allowed_failures + 1} workers were lost while they had it", "worker-lost")
    except (BreastMorphError, CancelledError, OSError):
        raise
    except Exception as error:
        raise BreastMorphError(
            "a worker cannot register scans ({name}: {why})",
            _AGAIN,
            name=type(error).__name__,
            why=str(error),
        ) from error
    return answer


@contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    # Scans that are sent with their content are meant to be large.
    settings = {"distributed.admin.large-graph-warning-threshold": "1TB"}
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors that matter are raised as ours
    unreachable = BreastMorphError(
        "no Dask scheduler answers at {scheduler}",
        "Check the address (tcp://host:port) and that `dask scheduler` runs there",
        scheduler=scheduler,
    )
    if not re.fullmatch(r"(\w+://)?[^/\s]+:\d+/?", scheduler):
        raise unreachable
    with dask.config.set(settings):
        try:
            client = Client(scheduler, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ValueError) as error:
            raise unreachable from error
        try:
            yield client
        finally:
            with suppress(Exception):
                client.close(timeout=2)


@contextmanager
def _equipped(client: Client, recipe: Recipe, limits: Limits) -> Iterator[str]:
    """Workers that know the recipe; the value is its name there."""
    try:
        client.wait_for_workers(1, timeout=_CONNECTING)
    except TimeoutError as error:
        raise BreastMorphError(
            "the Dask scheduler has no workers", "Start some with: dask worker tcp://host:port"
        ) from error
    _require_same_version(client)
    name = f"breastmorph-{secrets.token_hex(8)}"
    client.register_plugin(_Recipe(recipe, limits), name=name)
    try:
        yield name
    finally:
        with suppress(Exception):
            client.unregister_worker_plugin(name)


def _require_same_version(client: Client) -> None:
    def version() -> str:  # defined in here it travels by its content, also to where we are not installed
        try:
            from breastmorph import __version__ as found
        except ImportError:
            return "none"
        return found

    for worker, found in client.run(version).items():
        if found != __version__:
            raise _wrong_version(worker, found)


def _wrong_version(worker: str, found: str) -> BreastMorphError:
    return BreastMorphError(
        "worker {worker} has breastmorph {found}, this is {version}",
        "Install the same version there: pip install breastmorph=={version}",
        worker=worker,
        found=found,
        version=__version__,
    )


class _Recipe(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """The recipe on a worker, and the processes that follow it: as many as the worker has threads."""

    def __init__(self, recipe: Recipe, limits: Limits) -> None:
        self._recipe, self._limits, self._version = recipe, limits, __version__

    def setup(self, worker: Any) -> None:
        """Called by Dask on a worker."""
        if self._version != __version__:
            raise _wrong_version(worker.address, __version__)
        threads = worker.state.nthreads
        share = memory_share(threads, worker.memory_manager.memory_limit)
        self._limits = Limits(self._limits.seconds, self._limits.memory or share)
        self._children: list[Worker[_Task, _Answer]] = []
        self._idle: list[Worker[_Task, _Answer]] = []
        self._guard = threading.Lock()
        self._timer = threading.Timer(_IDLE, self._let_go)

    def teardown(self, worker: Any) -> None:
        """Called by Dask on a worker."""
        with self._guard:
            self._timer.cancel()
            for child in self._children:
                child.end()

    def run(self, task: _Task) -> _Answer:
        """Register a scan in a process that no other thread uses meanwhile."""
        with self._guard:
            child = self._idle.pop() if self._idle else Worker(partial(_child, self._recipe), self._limits)
            self._children = [
                *(other for other in self._children if not other.ended and other is not child),
                child,
            ]
        answer = child.run(task)
        with self._guard:
            if not child.ended:
                self._idle.append(child)
            self._timer.cancel()
            self._timer = threading.Timer(_IDLE, self._let_go)
            self._timer.daemon = True
            self._timer.start()
        return answer

    def _let_go(self) -> None:
        """End processes that have nothing to do: a caller that was killed takes no leave."""
        with self._guard:
            while self._idle:
                self._idle.pop().end()


def _on_worker(plugin: str, task: _Task) -> _Answer:
    worker = get_worker()
    recipe = worker.plugins.get(plugin)
    if recipe is None or not hasattr(recipe, "_guard"):
        raise BreastMorphError(
            "worker {address} did not accept the template (see its log)",
            "Take that worker away. {again}",
            address=worker.address,
            again=_AGAIN,
        )
    answer: _Answer = recipe.run(task)
    return answer


def _child(recipe: Recipe) -> Callable[[_Task], _Answer]:
    make = ProductMaker(recipe)

    def work(task: _Task) -> _Answer:
        if task.contents:
            return _from_contents(make, task)
        try:
            seen = input_hashes(task.files)
        except FileProblem:
            return None
        return make(task.files) if seen == task.inputs else None

    return work


def _from_contents(make: ProductMaker, task: _Task) -> Product | FailedScan:
    with tempfile.TemporaryDirectory(prefix="breastmorph-") as folder:
        copies = task.files.moved(lambda path: Path(folder) / path.name)
        for copy, data in zip(copies.paths, task.contents, strict=True):
            copy.write_bytes(data)
        return make(copies)
