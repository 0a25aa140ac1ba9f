"""Interface for running independent pieces of work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Runner(Protocol):
    """Applies a function to items, perhaps on several threads or machines."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results of ``fn(item)``, in the order of `items`.

        Lazy: no work starts before the first result is asked for. The first exception (in item order) is raised to
        the consumer, after which nothing more is started. Work may run ahead of the consumer by a bounded amount.
        """
        ...
