"""Scan planning on executors, for tables whose metadata is too much for the driver.

The driver reads the manifest list and prunes manifests. Executors decode and filter the remaining manifests, about
`TASK_BYTES` of them per task, and return the surviving files as compressed Arrow (`icebench.engine.plan.remote`). The
driver matches deletes to data files. Delete manifests are planned first: they determine which metrics of data files are
needed.

The mode is chosen by the caller (`PlanningMode`), else by the table's properties ``read.data-planning-mode`` and
``read.delete-planning-mode``; for ``auto``, by the size of the manifests. Nothing runs on Spark unless that was chosen,
and `ScanPlan.modes` says what was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from icebench.engine.errors import Invalid
from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.planner import PlanningMode
from icebench.engine.plan.remote import Numbered, Order, answers, balance
from icebench.engine.runtime.counters import Counters
from icebench.engine.spark.jobs import run_job
from icebench.engine.spec.manifest import ManifestContent, ManifestFile
from icebench.engine.spec.properties import DATA_PLANNING_MODE, DELETE_PLANNING_MODE

LOCAL_BYTES = 256 << 20
"""Manifests of one content, as stored, that ``auto`` leaves to the driver. Decoded for a filter on one column they take
1.4 times as much memory, and two threads need little more than a second for them, which is what starting executors may
take. Iceberg Java leaves 128 MB to each thread."""
TASK_BYTES = 32 << 20
"""Manifests of one task, as stored: decoding them takes about 0.3 s, where Spark needs 0.2 s for any task of Python."""


class SparkExecutors:
    """The executors of a Spark application, as `icebench.engine.plan.remote.Executors`.

    Args:
        spark: The user's session; its settings are left unchanged.
        modes: The planning mode for data manifests and for delete manifests.
        requests: Counts the executors' requests to storage; None does not count them.
        local_bytes: See `LOCAL_BYTES`.
        task_bytes: See `TASK_BYTES`.
    """

    def __init__(
        self,
        spark: SparkSession,
        modes: Mapping[ManifestContent, PlanningMode],
        *,
        requests: Counters | None = None,
        local_bytes: int = LOCAL_BYTES,
        task_bytes: int = TASK_BYTES,
    ) -> None:
        self._spark = spark
        self._modes = modes
        self._requests = requests
        self._local_bytes = local_bytes
        self._task_bytes = task_bytes

    def take(self, manifests: Sequence[ManifestFile]) -> bool:
        """Whether executors plan these manifests, which have the same content."""
        mode = self._modes[manifests[0].content]
        too_many = sum(manifest.manifest_length for manifest in manifests) > self._local_bytes
        return mode == "distributed" or (mode == "auto" and too_many)

    def filtered(self, order: Order, manifests: Sequence[ManifestFile], counters: Counters) -> list[Filtered]:
        """The surviving entries of these manifests, in order.

        Raises:
            Unsupported: The store exists in this process only.
            EngineError: As local planning would raise it; StorageFailed after Spark retried as often as it is
                configured to.
        """
        groups = [_without_summaries(group) for group in balance(manifests, self._task_bytes)]
        given = run_job(self._spark, _CarriedOut(order), groups)
        return answers(given, manifests, counters, self._requests, report=order.store.report)


def spark_executors(
    spark: SparkSession,
    properties: Mapping[str, str],
    mode: str | None = None,
    *,
    requests: Counters | None = None,
) -> SparkExecutors:
    """The executors of a session, used as `mode` says, or else as the properties of the table do.

    Raises:
        Invalid: There is no such mode.
    """
    chosen = {
        ManifestContent.DATA: _mode(mode or DATA_PLANNING_MODE.of(properties)),
        ManifestContent.DELETES: _mode(mode or DELETE_PLANNING_MODE.of(properties)),
    }
    return SparkExecutors(spark, chosen, requests=requests)


def _mode(text: str) -> PlanningMode:
    match text:
        case "auto" | "local" | "distributed":
            return text
    raise Invalid(f"planning mode {text!r} is none of auto, local, distributed")


def _without_summaries(group: Sequence[Numbered]) -> list[Numbered]:
    """The manifests without their partition summaries, which have been used already."""
    return [(number, replace(manifest, partitions=None)) for number, manifest in group]


@dataclass(frozen=True)
class _CarriedOut:
    """The function that executors run for a group of manifests."""

    order: Order

    def __call__(self, group: Sequence[Numbered], attempt: int) -> bytes:
        return self.order.carried_out(group)
