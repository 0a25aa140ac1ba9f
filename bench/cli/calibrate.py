"""`icebench calibrate`: how often the gate on time is wrong on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from json import dumps, loads
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import click
from rich.table import Table
from scipy import stats

from icebench.bench.cli.compare_revisions import CACHE, processors, warehouse_of
from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.places import write_whole
from icebench.bench.errors import ConfigError
from icebench.bench.execution.environment import hardware
from icebench.bench.gate.decisions.counter_verdict import ExitCode
from icebench.bench.gate.decisions.time_verdict import Stand, overall
from icebench.bench.gate.revisions.build import WORKTREE, Revision, build, planted
from icebench.bench.gate.revisions.pairs import Pairs
from icebench.bench.tables.cache import source_digest

CASES = ("scan/large/decimals", "plan/many/cold/no-filter")
_SLOWED = "engine/formats/parquet/readers.py"
_BEFORE = "            yield from file.reader.iter_batches(\n"
_AGAIN = """\
            again = max(1, file.metadata.row_group(row_group).num_rows * {share} // 100)
            next(file.reader.iter_batches(again, row_groups=[row_group], column_indices=list(leaves)), None)
"""
"""Decodes a share of each row group twice: work of the engine, as a careless change would add."""


@dataclass(kw_only=True)
class Decisions:
    """Decisions of one kind: how many ended how, the ratio that the slowed case showed, and seconds."""

    stands: dict[str, int] = field(default_factory=lambda: {stand.value: 0 for stand in Stand})
    ratios: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many were made."""
        return sum(self.stands.values())

    @property
    def interval(self) -> tuple[float, float]:
        """The exact interval of 95 % (Clopper and Pearson) of the share that ends in a regression."""
        found = stats.binomtest(self.stands[Stand.REGRESSED], self.count).proportion_ci(0.95)
        return float(found.low), float(found.high)


@click.command("calibrate")
@click.option("--decisions", default=20, help="Between equal engines.", show_default=True)
@click.option("--injected", default=3, help="For each slowdown.", show_default=True)
@click.option("--slowdown", "slowdowns", type=int, multiple=True, default=(5, 10, 20, 50), help="In per cent.")
@click.option("--seed", default=0, show_default=True)
@click.option("--resume", is_flag=True, help="Go on with the decisions that results/gate/calibration.json has.")
@pass_context
def calibrate(
    context: Context, *, decisions: int, injected: int, slowdowns: tuple[int, ...], seed: int, resume: bool
) -> int:
    """Decide many times between equal engines, and between one and the same with a part decoded twice.

    Each decision is kept when it is made, so that hours of them can be made in parts.
    """
    cache, root = CACHE.absolute(), Path.cwd()
    if not (root / "engine" / "__init__.py").is_file():
        said = f"icebench: {root}: not a checkout of icebench; calibrate runs in one, and builds its engine"
        context.terminal.err.print(said, markup=False, soft_wrap=True)
        return ExitCode.CONFIGURATION
    path = context.places.results / "gate" / "calibration.json"
    of = {"seed": seed, "engine": source_digest([root / "engine"]), "hardware": hardware()}
    kept = _read(path, of) if resume else {}
    with context.terminal.err.status("building") as status:
        base = build(WORKTREE, root=root, cache=cache)
        # In a directory of its own, as each revision has.
        heads: dict[str, Revision] = {"equal": planted(base, "copy", _SLOWED, (_BEFORE, _BEFORE), cache=cache)}
        for share in slowdowns:
            after = _AGAIN.format(share=share) + _BEFORE
            heads[f"+{share} %"] = planted(base, f"slowed-{share}", _SLOWED, (_BEFORE, after), cache=cache)
        warehouse = warehouse_of(base, cache)

        def pairs_of(kind: str, number: int) -> Pairs:
            random = Random(f"{seed} {kind} {number}")
            return Pairs(
                base=base,
                head=heads[kind],
                warehouse=warehouse,
                random=random,
                progress=status.update,
                at_once=processors(),
            )

        counts = {kind: decisions if kind == "equal" else injected for kind in heads}
        found = decide(counts, pairs_of, lambda so_far: _keep(path, of, so_far), kept)
    _print(context, found)
    return 0


def decide(
    counts: Mapping[str, int],
    pairs_of: Callable[[str, int], Pairs],
    keep: Callable[[Mapping[str, Decisions]], object],
    made: Mapping[str, Decisions] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Mapping[str, Decisions]:
    """Make that many decisions of each kind, interleaved so that drift of the machine affects all kinds equally.

    Args:
        counts: How many of each kind.
        pairs_of: Pairs of a kind, for the decision of a number.
        keep: Called after each decision.
        made: Decisions that count already; they keep their numbers, and only what is missing is made.
        clock: Monotonic seconds.
    """
    found = {**{kind: Decisions() for kind, count in counts.items() if count}, **(made or {})}
    for number in range(max(counts.values(), default=0)):
        for kind, own in found.items():
            if not own.count <= number < counts.get(kind, 0):
                continue
            started = clock()
            cases = pairs_of(kind, number).decide(CASES)
            own.stands[overall({name: case.stand for name, case in cases.items()})] += 1
            ratio = cases[CASES[0]].ratio
            if ratio is not None:
                own.ratios.append(ratio.estimate)
            own.seconds.append(clock() - started)
            keep(found)
    return found


def _keep(path: Path, of: Mapping[str, Any], found: Mapping[str, Decisions]) -> None:
    """`of` is what decisions depend on: those of another cannot be counted with them."""
    kinds = {kind: asdict(own) for kind, own in found.items() if own.count}
    write_whole(path, dumps({**of, "kinds": kinds}, indent=1) + "\n")


def _read(path: Path, of: Mapping[str, Any]) -> Mapping[str, Decisions]:
    try:
        kept = loads(path.read_text())
        made = {kind: Decisions(**own) for kind, own in kept["kinds"].items()}
    except FileNotFoundError as error:
        raise ConfigError("nothing to resume: no decision was kept", path=str(path)) from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"is not what calibrate keeps: {error}", path=str(path)) from error
    for name, value in of.items():
        if kept.get(name) != value:
            raise ConfigError(f"has the decisions of another {name}, {kept.get(name)}", path=str(path))
    return made


def _print(context: Context, found: Mapping[str, Decisions]) -> None:
    table = Table("head", "decisions", "regressed", "95 %", "inconclusive", "pass", "ratio seen", "minutes", box=None)
    for kind, own in found.items():
        if not own.count:
            continue
        low, high = own.interval
        shown = [own.stands[stand] for stand in (Stand.REGRESSED, Stand.INCONCLUSIVE, Stand.PASS)]
        table.add_row(
            kind,
            str(own.count),
            str(shown[0]),
            f"{low:.2f} to {high:.2f}",
            str(shown[1]),
            str(shown[2]),
            f"{median(own.ratios):.3f}" if own.ratios else "",
            f"{median(own.seconds) / 60:.1f}",
        )
    context.terminal.out.print(table)
