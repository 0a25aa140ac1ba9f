"""libdeflate as a C function, which compiled code calls to inflate into existing memory without Python in between.

The extension module of the `deflate` package exports libdeflate's own functions. Where a build hides them, callers
inflate through the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from deflate import _deflate

INSUFFICIENT_SPACE = 3
"""libdeflate's answer when the output has no room."""


@dataclass(frozen=True)
class _Library:
    function: int
    allocate: Any
    free: Any


@cache
def _library() -> _Library | None:
    try:
        library = ctypes.CDLL(_deflate.__file__)
        function, allocate, free = (
            getattr(library, f"libdeflate_{name}")
            for name in ("deflate_decompress", "alloc_decompressor", "free_decompressor")
        )
    except (AttributeError, OSError):
        return None
    allocate.restype, free.argtypes, free.restype = ctypes.c_void_p, [ctypes.c_void_p], None
    return _Library(ctypes.cast(function, ctypes.c_void_p).value or 0, allocate, free)


def is_callable() -> bool:
    """Whether compiled code can inflate by itself."""
    return _library() is not None


@contextmanager
def decompressor() -> Iterator[tuple[int, int]]:
    """The addresses of ``libdeflate_deflate_decompress`` and of a decompressor for one thread; if `is_callable`."""
    library = _library()
    assert library is not None
    made = library.allocate()
    if not made:
        raise MemoryError("libdeflate has no memory for a decompressor")
    try:
        yield library.function, made
    finally:
        library.free(made)
