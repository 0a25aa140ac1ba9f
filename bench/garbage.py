"""Keeps the garbage collector away from what a harness has loaded."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def out_of_collection() -> Iterator[None]:
    """Keeps what exists now out of garbage collection, until the end of the context.

    The modules of a harness with all its engines are 150,000 objects, which take 80 ms to walk: before every sample,
    and inside a timed part whenever the interpreter collects its oldest generation. A program with one engine has no
    such objects, so without them a figure is nearer to what a user sees.

    Where some were out of it before, all stay out: the interpreter can only take all of them back. To ask it whether
    there are any walks through them, so this is for a workload, and `keep_out` within it for each pass.
    """
    was_frozen = gc.get_freeze_count() > 0
    keep_out()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def keep_out() -> None:
    """Within `out_of_collection`, keeps out what exists by now, too."""
    gc.collect()
    gc.freeze()
