"""Schedules drawn from seeds.

Each seed enables some kinds of operations and some kinds of faults only: what rarely meets where everything may happen
meets often where little may (swarm testing).
"""

from __future__ import annotations

import random
from dataclasses import replace

from tests.simulation.operations import KEYS, KINDS, Drawing
from tests.simulation.running import Ending, Result, run
from tests.simulation.schedule import Operation, Schedule, Variant
from tests.simulation.world import Drawn

_IN_TRANSACTIONS = (
    "append",
    "append",
    "append",
    "append",
    "delete",
    "delete",
    "update",
    "upsert",
    "keyed",
    "overwrite",
)
_PAIRS = (
    ("append", "append"),
    ("append", "append"),
    ("append", "upsert"),
    ("append", "update"),
    ("delete", "append"),
    ("keyed", "keyed"),
    ("keyed", "keyed"),
)
"""Steps of transactions that are known to matter. Two thirds of the transactions have one of these."""
_THEMES = (
    ("transaction",),
    ("transaction",),
    ("transaction",),
    ("transaction", "keyed"),
    ("transaction", "keyed"),
    ("transaction", "keyed"),
    ("transaction", "append"),
    ("delete", "update", "upsert", "overwrite"),
    ("keyed", "rewrite", "delete", "update"),
    ("keyed", "evolve_spec", "overwrite_partitions"),
    ("stage", "cherry_pick", "expire"),
    ("expire", "tag", "branch", "remove_ref", "rollback"),
    ("append", "expire", "remove_orphans"),
    ("upgrade", "delete", "upsert", "transaction"),
    ("rename", "create", "append", "delete", "remove_orphans"),
)
"""Kinds of which two or more are known to matter to each other. Half of the seeds have one of these."""
_STATISTICS_THEMES = (
    ("compute_table_stats", "expire", "append"),
    ("compute_table_stats", "compute_table_stats", "overwrite", "drop_column"),
    ("compute_partition_stats", "expire", "overwrite_partitions"),
    ("compute_partition_stats", "keyed", "rewrite", "delete"),
    ("compute_partition_stats", "evolve_spec", "append"),
    ("compute_table_stats", "compute_partition_stats", "remove_orphans", "append"),
    ("compute_table_stats", "compute_partition_stats", "expire", "rollback", "cherry_pick"),
    ("compute_table_stats", "compute_partition_stats", "transaction", "upgrade", "rename"),
)
_STATISTICS_EVERY = 20
"""Of so many seeds the first has one of these; others have statistics seldom. What known seeds find stays."""
_INSTEAD = {
    "rewrite": (
        None,
        "cluster",
        "rewrite_position_deletes",
        "convert_equality_deletes",
        "convert_equality_deletes",
        None,
        "cluster",
    ),
    "sort_order": (None, "compute_table_stats", "compute_partition_stats"),
}
"""Other operations in place of some, by the rows and keys that were drawn before."""
_NEVER_DRAWN = frozenset(name for names in _INSTEAD.values() for name in names)
_FAULTS = ("fail", "lose", "die", "die-after", "unsent", "busy", "late", "twice", "stall")


def drawn_variant(rng: random.Random) -> Variant:
    """A table to begin with."""
    version = rng.choice((1, 2, 2, 3, 3))
    return Variant(
        catalog=rng.choice(("directory", "directory", "sql", "rest")),
        format_version=version,
        partitioning=rng.choice(("none", "none", "none", "p", "p", "bucket")),
        deletes=version > 1 and rng.random() < 0.3,
        merge_count=rng.choice((2, 4, 4, 4, 100)),
    )


def drawn(seed: int) -> tuple[Schedule, Drawn]:
    """The schedule of a seed, and what decides its interrupts."""
    rng = random.Random(seed)
    variant = drawn_variant(rng)
    is_of_statistics = seed % _STATISTICS_EVERY == 0
    if is_of_statistics and variant.partitioning == "none" and rng.random() < 0.7:
        variant = replace(variant, partitioning="p")
    possible = [name for name, kind in KINDS.items() if kind.suits(variant) and name not in _NEVER_DRAWN]
    if variant.format_version >= 3:
        possible.remove("upgrade")
    if is_of_statistics:
        kinds = [kind for kind in rng.choice(_STATISTICS_THEMES) if kind == "transaction" or KINDS[kind].suits(variant)]
    elif rng.random() < 0.5:
        kinds = [kind for kind in rng.choice(_THEMES) if kind == "transaction" or kind in possible]
    else:
        kinds = rng.sample([*possible, "transaction"], rng.choice((2, 3, 4)))
    drawing = Drawing(rng, variant)
    drawing.keys = rng.sample(KEYS, rng.choice((1, 2, 3)))
    drawing.branches = ("main",) if rng.random() < 0.8 else ("main", "main", "b")
    counts = rng.choice(((1, 1), (1, 1), (1, 1), (1, 1), (2, 1), (1, 2), (1, 1, 1)))
    chosen = [*rng.sample(kinds, len(kinds)), *rng.choices(kinds, k=3)][: sum(counts)]
    rng.shuffle(chosen)
    actors = tuple(tuple(_operation(chosen.pop(), drawing) for _ in range(count)) for count in counts)
    faults = rng.sample(_FAULTS, rng.choice((1, 2, 3))) if rng.random() < 0.4 else ()
    chooser = Drawn(
        rng, switches=rng.choice((0.02, 0.05, 0.1)), faults=faults, fault_rate=rng.choice((0.01, 0.03, 0.1))
    )
    return Schedule(seed, variant, actors), chooser


def ending_of(seed: int) -> Ending:
    """Most runs end soon: reading everything takes as long as some operations."""
    return "read" if seed % 16 == 0 else "cleaned" if seed % 4 == 0 else "checked"


def simulate(seed: int, *, ending: Ending | None = None) -> tuple[Schedule, Result]:
    """Run the schedule of a seed; returns it with the interrupts that happened."""
    schedule, chooser = drawn(seed)
    result = run(schedule, chooser, ending=ending or ending_of(seed))
    return replace(schedule, interrupts=chooser.recorded), result


def _operation(kind: str, drawing: Drawing) -> Operation:
    if kind != "transaction":
        operation = Operation(kind, KINDS[kind].draw(drawing))
        # They have no draw of their own: what known seeds find stays.
        others = _INSTEAD.get(kind, (None,))
        instead = others[(drawing.rows + drawing.keys[0]) % len(others)] or kind
        return replace(operation, kind=instead) if KINDS[instead].suits(drawing.variant) else operation
    rng = drawing.rng
    names = rng.choice(_PAIRS) if rng.random() < 0.67 else rng.choices(_IN_TRANSACTIONS, k=2)
    suiting = [name if KINDS[name].suits(drawing.variant) else "append" for name in names]
    return Operation("transaction", steps=tuple(_operation(name, drawing) for name in suiting))
