"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost tenfold."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib import import_module


def one_thread() -> AbstractContextManager[object]:
    """Pin the BLAS pools to one thread while the context lasts, where ``threadpoolctl`` is installed."""
    try:
        pools = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = pools.threadpool_limits(limits=1, user_api="blas")
    return limits
