"""One thread for linear algebra: the matrices here are small, and threads that wait for each other cost tenfold.

Besides, several threads add up in another order: last digits of a result would depend on the machine's cores.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def one_thread() -> AbstractContextManager[object]:
    """Pin the BLAS pools to one thread while the context lasts."""
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[object] = threadpool_limits(limits=1, user_api="blas")
    return limits


def in_one_thread(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that computes with the BLAS pools pinned to one thread."""

    @wraps(function)
    def pinned(*args: Parameters.args, **others: Parameters.kwargs) -> Result:
        with one_thread():
            return function(*args, **others)

    return pinned
