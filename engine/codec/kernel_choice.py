"""Whether to run the Avro kernels compiled by Numba or as plain Python; see `engine.compiling`."""

from __future__ import annotations

from typing import Any

from engine.compiling import interprets as interprets_for

_NS_PER_BYTE = 140
"""What plain Python takes for each uncompressed byte of a manifest."""


def interprets(size_bytes: int) -> bool:
    """Whether plain Python is the better choice for this many more bytes; counts them when it is."""
    return interprets_for(size_bytes * _NS_PER_BYTE)


def compiled() -> Any:  # noqa: ANN401 - the module
    """The compiled kernels; loads them the first time."""
    # local import: importing Numba takes longer than planning a small table
    from engine.codec import avro_compiled

    return avro_compiled
