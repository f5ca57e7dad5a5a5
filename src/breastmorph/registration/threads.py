"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost tenfold."""

from __future__ import annotations

from contextlib import AbstractContextManager


def one_thread() -> AbstractContextManager[object]:
    """Pin the BLAS pools to one thread while the context lasts."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits
