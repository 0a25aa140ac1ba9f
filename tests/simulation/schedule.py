"""What a simulation runs: actors with operations on one table, and where they are interrupted. Plain data.

A schedule says everything: run twice, it does the same twice. `drawn` makes one of a seed, `tests.simulation.shrinking`
makes smaller ones of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

CatalogKind = Literal["directory", "sql", "rest"]
Partitioning = Literal["none", "p", "bucket"]

Value: TypeAlias = "int | float | None"
RowValues: TypeAlias = tuple[Value, ...]
"""Of the columns k (the key), v (unique for each row ever written), p (partitions; may be null or NaN)."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The table that a schedule begins with.

    Args:
        catalog: Whose semantics decide commits.
        format_version: 1 to 3.
        partitioning: By nothing, by identity of p, or by bucket of k.
        deletes: Its history has a merge-on-read delete (version 2 or later).
        merge_count: ``commit.manifest.min-count-to-merge``.
    """

    catalog: CatalogKind
    format_version: int
    partitioning: Partitioning = "none"
    deletes: bool = False
    merge_count: int = 100

    def __str__(self) -> str:
        extra = [f"v{self.format_version}", f"partitioned by {self.partitioning}"]
        extra += ["with deletes"] * self.deletes
        extra += [f"manifests merged from {self.merge_count}"] * (self.merge_count < 100)
        return f"{self.catalog} catalog, {', '.join(extra)}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One call of the public API.

    Args:
        kind: A name in `tests.simulation.operations.KINDS`.
        args: Its arguments.
        steps: The operations of a transaction.
    """

    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)
    steps: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        if self.steps:
            return f"{self.kind}[{'; '.join(map(str, self.steps))}]"
        return f"{self.kind}({', '.join(f'{name}={value}' for name, value in self.args.items())})"


Point: TypeAlias = tuple[int, int, int]
"""Actor, operation of it, call of that; call 0 comes before the operation's first one."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """What happens at a point.

    Args:
        kind: ``switch``: another actor runs. ``fail``: the call is not carried out. ``lose``: it is, and its answer is
            lost. ``die`` and ``die-after``: the process ends before or after the call. ``stall``: days pass. Others are
            faults of one catalog.
        to: The actor that runs next, after a switch; the days that pass, after a stall.
    """

    kind: str
    to: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run.

    Args:
        seed: What it was drawn from.
        variant: The table.
        actors: The operations of each, one after the other.
        interrupts: Where something else happens than the next call of the same actor.
    """

    seed: int
    variant: Variant
    actors: tuple[tuple[Operation, ...], ...]
    interrupts: Mapping[Point, Interrupt] = field(default_factory=dict)
