"""Tables as streams of changes, or refreshes, leave them, with and without compaction: what reading them adds.

A state of the table is compared with the same state compacted: the same rows without what the batches left behind, so
that a difference is the cost of small files, deletes and manifests. All states of a history are scanned in the same
rounds, whenever they were made: a drifting machine does not look like a table that degrades.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icebench
from icebench.bench.engines.registry import readers_of
from icebench.bench.execution.environment import hardware
from icebench.bench.execution.measurement import BUILDER
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.maintenance.passes import run_pass
from icebench.bench.maintenance.policy import Policy
from icebench.bench.progress import Progress
from icebench.bench.records.case import EVERYTHING, Case, Evidence
from icebench.bench.tables.cache import DatasetCache, source_digest
from icebench.bench.trials.scanning import Scanning
from icebench.bench.truth.manifests import DATA, live_files, manifest_list
from icebench.bench.truth.metadata import load_table_json
from icebench.bench.truth.oracle import Oracle
from icebench.bench.workloads.definitions import DEFAULT, EventsWorkload
from icebench.bench.workloads.events import DELETE, INSERT, UPDATE, Events
from icebench.bench.workloads.reading_files import DELETE_TITLES
from icebench.bench.workloads.refreshes import Refreshes

PHASE = "tables"
KEY = "key"
_MOVED = ("added-files-size", "removed-files-size")

_ROOT = Path(__file__).resolve().parents[2]
_MADE_BY = tuple(
    _ROOT / part for part in ("bench/trials/histories.py", "bench/workloads", "bench/maintenance", "engine")
)
"""Programs that decide what is in the tables, and how long maintenance takes."""


def histories(
    workload: EventsWorkload, engines: Sequence[str], cache: DatasetCache, progress: Progress
) -> Iterator[Measurement]:
    """The scans of each state of each history, with all tables made.

    Raises:
        DatasetFailed: The disk refused.
        EngineError: This project's engine could not write a table.
    """
    events = workload.events
    maintained: tuple[int | str, ...] = (*workload.compact_every, *workload.policies)
    made = [(kind, kept) for kind in workload.deletes for kept in maintained]
    for done, (kind, kept) in enumerate(made):
        how = f"kept by policy {Path(kept).stem}" if isinstance(kept, str) else f"compacted every {kept}"
        name = f"{DELETE_TITLES[kind]}, {how if kept else 'never compacted'}"
        progress(PHASE, name, done, len(made))
        states = _states(workload, kind, kept, cache)
        yield MaintenanceCost(case=Case(workload=workload.name, layout=name, measurement="reading"), states=states)
        for state in states:
            compacted = f"after {state['batch']} batches, compacted"
            for filter, text in {EVERYTHING: None, **events.filters}.items():
                shown = "" if text is None else f"{filter} "
                yield Scanning(
                    case=Case(workload=workload.name, layout=name, measurement="reading"),
                    tables={
                        shown + compacted: state["compacted"],
                        f"{shown}after {state['batch']} batches": state["location"],
                    },
                    columns=events.schema.names,
                    filters={filter: text},
                    engines=readers_of(kind, engines),
                    base=shown + compacted,
                    same_rows=True,
                    truth=partial(_oracle, Path(state["raw"])),
                    counters={
                        shown + compacted: left_behind(state["compacted"]),
                        f"{shown}after {state['batch']} batches": left_behind(state["location"]),
                    },
                )


@dataclass(frozen=True, kw_only=True)
class MaintenanceCost:
    """What keeping a table took up to each of its states: counted, and timed once, when the history was made, which was
    on hardware like this and by the same programs."""

    case: Case
    states: Sequence[Mapping[str, Any]]

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for state in self.states:
            spent = dict(state["maintenance"])
            case = replace(self.case, configuration=f"after {state['batch']} batches, maintenance").of(BUILDER)
            seconds = {"maintenance_cpu": float(spent.pop("cpu_seconds"))}
            yield Trial(case=case, evidence=Evidence(counters=spent, figures=seconds))


@dataclass
class Spent:
    """What keeping a table has taken so far.

    Args:
        maintenance_passes: That changed it.
        maintenance_bytes: Of the data and delete files that they read and wrote.
        cpu_seconds: Of processor time, of passes that found nothing to do, too.
    """

    maintenance_passes: int = 0
    maintenance_bytes: int = 0
    cpu_seconds: float = 0.0

    def add(
        self, table: icebench.Table, steps: Iterable[object], clock: Callable[[], float] = time.process_time
    ) -> None:
        """Carry out a pass, and add it."""
        location = table.metadata_location
        counted = {snapshot.snapshot_id for snapshot in table.snapshots}
        began = clock()
        for _ in steps:
            # A later step may expire the snapshots of this one.
            for snapshot in table.refresh().snapshots:
                if snapshot.snapshot_id not in counted:
                    counted.add(snapshot.snapshot_id)
                    self.maintenance_bytes += sum(int(snapshot.summary.get(name, "0")) for name in _MOVED)
        self.cpu_seconds += clock() - began
        self.maintenance_passes += table.refresh().metadata_location != location


def _oracle(raw: Path, _: str) -> Oracle:
    """Of both tables, which hold the same rows."""
    return Oracle([raw])


def left_behind(location: str) -> dict[str, int]:
    """What a scan of the table has to go through, exactly: files, deletes, manifests and bytes."""
    table = load_table_json(location)
    files = live_files(table)
    data = [file for file in files if file.content == DATA]
    return {
        "data_files": len(data),
        "data_bytes": sum(file.size_bytes for file in data),
        "delete_files": len(files) - len(data),
        "delete_records": sum(file.records for file in files if file.content != DATA),
        "manifests": len(manifest_list(table)),
    }


def _states(workload: EventsWorkload, kind: str, kept: int | str, cache: DatasetCache) -> list[dict[str, Any]]:
    """The state after each batch that is measured: its metadata file, that of its compacted twin, and its raw rows.

    `kept` is the file of a policy, ``default``, or after how many batches the table is compacted, 0 for never.
    """
    events = workload.events
    policy = Policy.load(None if kept == DEFAULT else Path(kept)) if isinstance(kept, str) else None

    def build(folder: Path) -> Mapping[str, Any]:
        catalog = icebench.load_catalog(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        version = "3" if kind == "vectors" else "2"
        table = catalog.create_table("bench.events", events.schema, properties={"format-version": version})
        states, spent = [], Spent()
        for batch in range(events.batches + 1):
            if isinstance(events, Refreshes):
                refresh(table, events, batch)
            else:
                (_by_key if kind == "equality" else commit_by_position)(table, events, batch)
            if policy is not None and batch:
                spent.add(table, run_pass(table, policy, execute=True))
            elif not isinstance(kept, str) and kept and batch and batch % kept == 0:
                spent.add(table, map(compact, [table]))
            if batch in workload.measured:
                raw = folder / f"rows-after-{batch}.parquet"
                pq.write_table(events.live(batch), raw)
                twin = catalog.register_table(f"bench.compacted_{batch}", table.metadata_location)
                compact(twin)
                states.append(
                    {
                        "batch": batch,
                        "raw": str(raw),
                        "location": table.metadata_location,
                        "compacted": twin.metadata_location,
                        "maintenance": asdict(spent),
                    }
                )
        catalog.close()
        return {"states": states}

    key = {
        **events.key(),
        "kind": kind,
        # The order of a set's `repr` is another in each process.
        "kept": repr(kept if policy is None else {**vars(policy), "actions": sorted(policy.actions)}),
        "measured": list(workload.measured),
        "made by": source_digest(_MADE_BY),
        "timed on": hardware(),
    }
    found: list[dict[str, Any]] = cache.find_or_build(f"{workload.kind}-{kind}", key, build)["states"]
    return found


def refresh(table: icebench.Table, refreshes: Refreshes, batch: int) -> None:
    """Add the rows of a batch, then delete: two commits, as two statements of SQL would make them."""
    table.append(refreshes.added(batch))
    if batch:
        table.delete(refreshes.deleted(batch), mode="merge-on-read")


def _by_key(table: icebench.Table, events: Events, batch: int) -> None:
    """Commit a batch as a stream writer does that never reads the table: deletes are keys."""
    stream = table.keyed_stream([KEY])
    takers = {UPDATE: stream.update, DELETE: stream.delete, INSERT: stream.insert}
    for kind, (start, stop) in events.kinds(batch).items():
        rows = pa.Table.from_batches([events.rows(start, stop)])
        takers[kind](rows.select([KEY]) if kind == DELETE else rows)
    stream.commit()


def commit_by_position(table: icebench.Table, events: Events, batch: int) -> None:
    """Commit a batch as a merge does that looks up which rows it replaces: the last change of each key counts."""
    if not batch:
        table.append(pa.Table.from_batches([events.rows(*events.span(batch))]))
        return
    start, _ = events.span(batch)
    last = pa.Table.from_batches([events.last(start, events.span(batch)[1])])
    deleted = events.is_delete(last.column("version").to_numpy())
    with table.transaction() as merge:
        merge.upsert(last.filter(pa.array(~deleted)), [KEY], mode="merge-on-read")
        if keys := last.column(KEY).filter(pa.array(deleted)).to_pylist():
            merge.delete(f"{KEY} in ({', '.join(map(str, keys))})", mode="merge-on-read")


def compact(table: icebench.Table) -> None:
    """Rewrite all files, applying deletes, and the manifests."""
    table.maintenance.rewrite_data_files(rewrite_all=True, remove_dangling_deletes=True)
    table.maintenance.rewrite_manifests()
