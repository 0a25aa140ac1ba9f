"""What building a table took, as its builder recorded it with the table; nothing is built again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from icebench.bench.execution.measurement import BUILDER
from icebench.bench.execution.trial import Bench, Trial
from icebench.bench.records.case import Case, Evidence
from icebench.bench.tables.table_builder import BuildCost


@dataclass(frozen=True, kw_only=True)
class Building:
    """The cost of one table.

    Args:
        case: The table's.
        cost: Kept with it.
    """

    case: Case
    cost: BuildCost

    def trials(self, bench: Bench) -> Iterator[Trial]:
        figures = {f"build_{name}": float(value) for name, value in asdict(self.cost).items()}
        yield Trial(case=self.case.of(BUILDER), evidence=Evidence(figures=figures))
