"""Building a table again and again, beside everything else that is timed: what a layout costs before it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree

from icebench.bench.errors import Disagreement
from icebench.bench.execution.measurement import BUILDER
from icebench.bench.execution.trial import Bench, Timed, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.tables.table_builder import BuildCost, TableBuild
from icebench.bench.trials.commits import workspace

_NEAR = 0.1
"""How far the files of a build may be from those of the table, as a share: a builder of another shape costs less or
more."""


@dataclass(frozen=True, kw_only=True)
class Building:
    """The cost of one table.

    Args:
        case: The table's.
        cost: Kept with it.
        workspace: Directory for the tables that are built, which are deleted.
        prepare: Makes a build of the same table in an empty directory; None where builds are not timed.
        seconds: What one took in this process; None if none was made.
        on_spark: Whether Spark works for it.
    """

    case: Case
    cost: BuildCost
    workspace: Path
    prepare: Callable[[Path], TableBuild] | None = None
    seconds: float | None = None
    on_spark: bool = False

    def trials(self, bench: Bench) -> Iterator[Trial]:
        figures = {f"build_{name}": float(value) for name, value in asdict(self.cost).items()}
        case, evidence = self.case.of(BUILDER), Evidence(figures=figures)
        if self.prepare is None:
            yield Trial(case=case, evidence=evidence)
            return
        folder = bench.resources.enter_context(workspace(self.workspace)) / "table"
        again = _Again(cost=self.cost, make=self.prepare, folder=folder)
        yield Trial(
            case=case,
            evidence=evidence,
            prepare=again.prepare,
            seconds=self.seconds,
            after=again.after,
            on_spark=self.on_spark,
        )


@dataclass(kw_only=True)
class _Again:
    """Builds the same table in the same place."""

    cost: BuildCost
    make: Callable[[Path], TableBuild]
    folder: Path
    build: TableBuild | None = None

    def prepare(self) -> Timed:
        rmtree(self.folder, ignore_errors=True)  # what a build that failed has left
        self.folder.mkdir()
        self.build = self.make(self.folder)
        return partial(self.build.write)

    def after(self) -> Mapping[str, float]:
        """Delete the table; what of building it was compaction.

        Raises:
            Disagreement: It has not as many files as the table that is asked.
        """
        assert self.build is not None
        _, cost = self.build.finish()
        rmtree(self.folder)
        if abs(cost.files / self.cost.files - 1) > _NEAR:
            raise Disagreement(f"building it again gave {cost.files} files, not {self.cost.files}")
        return {"build_compaction_seconds": self.build.compaction_seconds}
