"""Kernels that Numba compiles from loops over arrays, and keeps in its own cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

from icebench.engine.kernels.policy import note_numba, should_interpret

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_NS_PER_BYTE = 400
"""Cost of plain Python for each byte of a kernel's arrays, measured with those of
`icebench.engine.expressions.kernels`."""
_LOCK = RLock()


def uninterrupted(load: Callable[[], T]) -> T:
    """Call a function that imports Numba or compiles, on a thread of its own, and wait for it.

    Python raises KeyboardInterrupt in the main thread only, and here after the function has ended. Cut short, an import
    of Numba fails at every later attempt of the process, and with it whatever needs a kernel.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="icebench") as pool:
        return pool.submit(load).result()


def jit(function: Callable[P, R], **options: Any) -> Callable[P, R]:  # noqa: ANN401 - Numba's own options
    """Compile a function at its first call, to run without the GIL, and keep the code in Numba's cache.

    Where no cache directory can be written, each process compiles for seconds: a RuntimeWarning says what to do.
    """
    # local import: Numba takes longer to load than a small table to plan
    import numba

    note_numba()
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
        self,
        function: Callable[P, R],
        helpers: Sequence[Callable[..., Any]],
        work: Callable[..., int] | None,
        plain: Callable[P, R] | None = None,
    ) -> None:
        self._function = function
        self._plain = plain or function
        self._helpers = helpers
        self._work = work
        self._compiled: Callable[P, R] | None = None
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._compiled is None:
            if self._work is not None and should_interpret(_NS_PER_BYTE * self._work(*args, **kwargs)):
                # Compiled integers wrap around without a warning.
                with np.errstate(over="ignore"):
                    return self._plain(*args, **kwargs)
            return uninterrupted(lambda: self._compile()(*args, **kwargs))
        return self._compiled(*args, **kwargs)

    def _compile(self) -> Callable[P, R]:
        # local import: Numba takes longer to load than a small table to plan
        from numba.extending import register_jitable

        with _LOCK:
            for helper in self._helpers:
                register_jitable(helper)
            self._compiled = self._compiled or jit(self._function)
            return self._compiled


def array_bytes(*args: Any, **kwargs: Any) -> int:  # noqa: ANN401 - whatever the kernel takes
    """The size of the arrays among the arguments: the work of a kernel that goes once over them."""
    del kwargs
    return sum(arg.nbytes for arg in args if isinstance(arg, np.ndarray))


class Decorator(Protocol):
    """Makes a kernel of a function."""

    def __call__(self, function: Callable[P, R], /) -> Kernel[P, R]: ...


def kernel(
    *,
    helpers: Sequence[Callable[..., Any]] = (),
    work: Callable[..., int] | None = array_bytes,
    plain: Callable[..., Any] | None = None,
) -> Decorator:
    """Decorate a function of arrays and numbers, which is called by position.

    Args:
        helpers: Plain functions that it calls, and that they call.
        work: The bytes that a call goes over, computed from its arguments. None compiles at the first call, for
            functions that depend on the widths of compiled integers.
        plain: What is called instead of the function while it is not compiled, where that is faster; gives the same.
    """

    def decorate(function: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(function, helpers, work, plain)

    return decorate
