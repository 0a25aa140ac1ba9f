"""Whether to run the kernels compiled by Numba or as plain Python.

Loading compiled kernels takes longer than planning a small table, so a process runs them as plain Python until it has
worked through some megabytes, and compiled from then on; see docs/design/manifest-decoding.md.
"""

from __future__ import annotations

import sys
from typing import Any

_COMPILED = "engine.codec.avro_compiled"

INTERPRETED_BYTES = 4 << 20
"""Uncompressed bytes that a process works through as plain Python before it loads the compiled kernels."""


class _Budget:
    used = 0


def interprets(size_bytes: int) -> bool:
    """Whether plain Python is the better choice for this many more bytes; counts them when it is."""
    if _COMPILED in sys.modules or _Budget.used + size_bytes > INTERPRETED_BYTES:
        return False
    _Budget.used += size_bytes
    return True


def compiled() -> Any:  # noqa: ANN401 - the module
    """The compiled kernels; loads them the first time."""
    # local import: importing Numba takes longer than planning a small table
    from engine.codec import avro_compiled

    return avro_compiled
