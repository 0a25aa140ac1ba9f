"""Keeps the garbage collector away from what a harness has loaded."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def out_of_collection() -> Iterator[Callable[[], None]]:
    """Keeps what exists now out of garbage collection, until the end of the context; what it gives is called to keep
    out what exists by then.

    The modules of a harness with all its engines are 150,000 objects, which take 80 ms to walk: before every sample,
    and inside a timed part whenever the interpreter collects its oldest generation. A program with one engine has no
    such objects, so without them a figure is nearer to what a user sees.

    Where some were out of it before, all stay out: the interpreter can only take all of them back. To ask it whether
    there are any walks through them.
    """
    was_frozen = gc.get_freeze_count() > 0
    _keep_out()
    try:
        yield _keep_out
    finally:
        if not was_frozen:
            gc.unfreeze()


def _keep_out() -> None:
    gc.collect()
    gc.freeze()
