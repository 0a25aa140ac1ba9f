"""Filtered reads from an object store that is far away: an S3 server on this machine, with the delays of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from icebench.bench.costs.object_store import CROSS_REGION, PROFILES, SAME_REGION
from icebench.bench.definition import Definition
from icebench.bench.execution.measurement import (
    SCAN_SERIES,
    Asked,
    MeasurementKind,
    Metric,
    Race,
    SectionText,
)
from icebench.bench.workloads.gives import Gives

if TYPE_CHECKING:
    from icebench.bench.workloads.workload import Workload


@dataclass(frozen=True, kw_only=True)
class RemoteReads:
    """What is read: columns, none for the workload's choice; whether without a filter, too; and from how far, by names
    of `icebench.bench.costs.object_store.PROFILES`."""

    columns: tuple[str, ...]
    everything: bool
    profiles: tuple[str, ...]


class _Kind(MeasurementKind):
    name = "remote"
    description = "rows delivered under each filter from an S3 server with the delays of one far away"
    seconds = 1.0
    series: ClassVar = SCAN_SERIES
    suits = frozenset({Gives.ROWS, Gives.TABLE})
    is_usual = False
    made_by = "icebench.bench.trials.remote:remote"
    section = SectionText(
        title="Reads from a remote store",
        explanation=(
            "Cold filtered reads of copies of each table on an S3 server of this machine (moto's), which holds back "
            "each answer as long as a store in the same region would, or one in another: "
            "docs/design/object-store-costs.md says how long. What is added is against the same server without delays. "
            "Every engine was seen to deliver the right rows."
        ),
        metrics=(
            Metric(
                name="scan_time_cold",
                title="Time of the remote read",
                caption="Time to deliver the rows that a filter keeps: median and interval.",
                added="scan_time_cold_added",
            ),
        ),
        case="Store and filter",
        added=("{}: what is added", "the same read without delays"),
    )
    races: ClassVar = tuple(
        Race(what=f"Reading from a store ({name})", metric="scan_time_cold", cases=f"{name},") for name in PROFILES
    )
    rows_counter = "rows_returned"

    def parse(self, values: Definition) -> RemoteReads:
        usual = [SAME_REGION.name, CROSS_REGION.name]
        return RemoteReads(
            columns=values.columns(),
            everything=values.flag("everything", default=False),
            profiles=values.names("profiles", usual, known=PROFILES, what="profile"),
        )

    def cases(self, workload: Workload, asked: Asked) -> int:
        return len(asked.engines) * (asked.filters + asked.options.everything) * (1 + len(asked.options.profiles))


KIND = _Kind()
