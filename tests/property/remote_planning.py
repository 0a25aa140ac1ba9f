"""Plans made through everything that executors are sent and give back, in this process."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icebench.engine.plan.filtering import Filtered
from icebench.engine.plan.remote import Numbered, Order, answers, balance
from icebench.engine.plan.scan import ScanPlan, TableScan
from icebench.engine.runtime.counters import Counters
from icebench.engine.spec.manifest import ManifestFile
from icebench.engine.storage.counting import CountingStore


@dataclass
class OtherProcesses:
    """Executors that pickle what they are sent, but for the store, which may be in memory.

    Args:
        group_bytes: Manifests of one process.
    """

    group_bytes: int = 1
    requests: Counters = field(default_factory=Counters)
    given: list[bytes] = field(default_factory=list)

    def take(self, manifests: Sequence[ManifestFile]) -> bool:
        assert len({manifest.content for manifest in manifests}) == 1
        return True

    def filtered(self, order: Order, manifests: Sequence[ManifestFile], counters: Counters) -> list[Filtered]:
        alone = pickle.dumps(replace(order, store=None))  # type: ignore[arg-type]
        given = [self.answer(alone, order, group) for group in balance(manifests, self.group_bytes)]
        # Whoever is ready first answers first.
        return answers(reversed(given), manifests, counters, self.requests, report=order.store.report)

    def answer(self, alone: bytes, order: Order, group: list[Numbered]) -> bytes:
        got: Order = pickle.loads(alone)
        # Copied as pickled, a store that counts is the one that it counts for.
        store = copy(order.store) if isinstance(order.store, CountingStore) else order.store
        answer = replace(got, store=store).carried_out(pickle.loads(pickle.dumps(group)))
        self.given.append(answer)
        return answer


def assert_same(plan: ScanPlan, expected: ScanPlan) -> None:
    """The same files in the same order, with the same deletes and residuals, and the same counters."""
    assert plan.counters == expected.counters
    plan.files.validate(full=True)
    assert plan.files.schema == expected.files.schema
    # Dictionaries may be in another order; what rows refer to in them may not.
    assert repr(_readable(plan.files)) == repr(_readable(expected.files))
    residuals = [str(plan.residuals[plan.residual_codes[row]]) for row in range(plan.files.num_rows)]
    assert residuals == [str(expected.residuals[expected.residual_codes[row]]) for row in range(plan.files.num_rows)]


def _readable(files: pa.Table) -> list[object]:
    """Rows as Python has them, dates and times of partitions as numbers: those of a table may be none of Python's."""
    # Of no chunks pyarrow makes no array of an extension type.
    chunks = files.column("partition").chunks
    partitions = pa.concat_arrays(chunks).flatten() if chunks else []
    numbers = [
        each.view(pa.int32() if each.type.bit_width == 32 else pa.int64()) if pa.types.is_temporal(each.type) else each
        for each in partitions
    ]
    return [files.drop_columns(["partition"]).to_pylist(), [each.to_pylist() for each in numbers]]


def assert_same_elsewhere(scan: TableScan, plan: ScanPlan, group_bytes: int = 1) -> None:
    """Other processes plan the scan as it was planned here."""
    assert set(plan.modes.values()) == {"local"}
    other = replace(scan, executors=OtherProcesses(group_bytes)).plan()
    assert_same(other, plan)
    if plan.counters["manifests_decoded"]:
        assert "distributed" in other.modes.values()
