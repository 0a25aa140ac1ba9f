"""Loops over arrays that Numba compiles: one place that decides when, and what is done where it cannot keep its code.

A kernel is plain Python that Numba can compile. Loading Numba with its cached code takes about as long as planning ten
small tables, so a process interprets its kernels until it has spent that long on it, and compiles from then on: at
worst it pays twice, and a process with little to do never loads Numba.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_BUDGET_NS = 500_000_000
"""How long a process interprets. Loading Numba takes some 0.6 s."""
_NS_PER_BYTE = 400
"""What plain Python takes for each byte of a kernel's arrays, by measurement of those in `expressions.kernels`."""
_LOCK = RLock()


class _Process:
    spent_ns = 0
    compiles = False


def interprets(work_ns: int) -> bool:
    """Whether plain Python is the better choice for work that takes it so long; counts the time when it is."""
    if _Process.compiles or _Process.spent_ns + work_ns > _BUDGET_NS:
        return False
    _Process.spent_ns += work_ns
    return True


def spent_ns() -> int:
    """How long this process has interpreted what it might have compiled."""
    return _Process.spent_ns


def jit(function: Callable[P, R], **options: Any) -> Callable[P, R]:  # noqa: ANN401 - Numba's own options
    """The function compiled by Numba at its first call, without the GIL; its code is kept on disk beside the source, in
    the user's cache directory, or in ``NUMBA_CACHE_DIR``.

    Where none of them can be written the code is not kept, which costs seconds in every process: a RuntimeWarning says
    what to do.
    """
    # local import: Numba takes longer to load than a small table to plan
    import numba

    _Process.compiles = True
    options = {"nogil": True, **options}
    try:
        compiled: Callable[P, R] = numba.njit(function, cache=True, **options)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        message = (
            "compiled code cannot be kept, because neither the package nor the home directory can be written; "
            "each process compiles for seconds: set NUMBA_CACHE_DIR to a directory that can be written"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        compiled = numba.njit(function, **options)
    return compiled


class Kernel(Generic[P, R]):
    """A function that is interpreted or compiled; make one with `kernel`."""

    def __init__(
        self, function: Callable[P, R], helpers: Sequence[Callable[..., Any]], work: Callable[..., int] | None
    ) -> None:
        self._function = function
        self._helpers = helpers
        self._work = work
        self._compiled: Callable[P, R] | None = None
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._compiled is None:
            if self._work is not None and interprets(_NS_PER_BYTE * self._work(*args, **kwargs)):
                # Compiled integers wrap without a word.
                with np.errstate(over="ignore"):
                    return self._function(*args, **kwargs)
            self._compiled = self._compile()
        return self._compiled(*args, **kwargs)

    def _compile(self) -> Callable[P, R]:
        # local import: Numba takes longer to load than a small table to plan
        from numba.extending import register_jitable

        with _LOCK:
            for helper in self._helpers:
                register_jitable(helper)
            return self._compiled or jit(self._function)


def array_bytes(*args: Any, **kwargs: Any) -> int:  # noqa: ANN401 - whatever the kernel takes
    """The size of the arrays among the arguments: the work of a kernel that goes once over them."""
    del kwargs
    return sum(arg.nbytes for arg in args if isinstance(arg, np.ndarray))


class Decorator(Protocol):
    """Makes a kernel of a function."""

    def __call__(self, function: Callable[P, R], /) -> Kernel[P, R]: ...


def kernel(*, helpers: Sequence[Callable[..., Any]] = (), work: Callable[..., int] | None = array_bytes) -> Decorator:
    """Decorates a function of arrays and numbers, which is called by position.

    Args:
        helpers: Plain functions that it calls, and that they call.
        work: How much a call has to do, in bytes that are looked at, from its arguments. None compiles always, for
            functions that lean on the widths of compiled integers.
    """

    def decorate(function: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(function, helpers, work)

    return decorate
