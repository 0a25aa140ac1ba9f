"""One run of a schedule, from a prepared table to the checker's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.commit.committer import TableState
from icebench.engine.maintenance.remove_orphan_files import DEFAULT_AGE_MS
from icebench.engine.spec.creation import new_table_metadata
from icebench.engine.spec.partitioning import partition_spec
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import UNSORTED
from icebench.engine.spec.transforms import parse_transform
from icebench.engine.spec.types import DOUBLE, LONG, NestedField
from icebench.errors import EngineError
from tests.simulation.catalogs import PLACES, WAREHOUSE, Directory, Place, Pointers, Rest, store_of
from tests.simulation.checker import Checker, Record
from tests.simulation.operations import KINDS, ends_of
from tests.simulation.process import TABLE, Process, Step
from tests.simulation.reading import plain_rows
from tests.simulation.schedule import Operation, Schedule, Variant
from tests.simulation.world import DAY_MS, START_MS, Actor, Chooser, Died, Event, Replay, Violation, World, present

SCHEMA = Schema(
    tuple(
        NestedField(field_id=i, name=name, type=type_, required=False)
        for i, name, type_ in ((1, "k", LONG), (2, "v", LONG), (3, "p", DOUBLE))
    )
)
_SPECS: Mapping[str, list[tuple[str, str]]] = {"none": [], "p": [("p", "identity")], "bucket": [("k", "bucket[4]")]}
_DAYS = 8


@dataclass(frozen=True)
class Result:
    """What came of a run.

    Args:
        failure: What went wrong.
        interrupts: Those that happened.
        events: What happened, line by line.
        trace: Every call.
        beyond_promise: A writer took longer than orphan removal waits, and lost its files.
    """

    failure: Violation | None
    events: list[Event]
    trace: list[tuple[int, int, str, str]]
    records: list[Record]
    beyond_promise: bool
    calls: int


@dataclass(frozen=True)
class _Prepared:
    files: Mapping[str, tuple[bytes, int]]
    pointers: Pointers
    ids: int


Ending = Literal["checked", "cleaned", "read"]
"""How much is done at the end: what was acknowledged is compared; then orphans are removed; then all is read."""


def run(schedule: Schedule, chooser: Chooser | None = None, *, ending: Ending = "read", traced: bool = False) -> Result:
    """Run a schedule; inside `tests.simulation.world.deterministic`.

    Args:
        schedule: What to run.
        chooser: Decides instead of the schedule's interrupts.
        ending: See there.
        traced: Keep every call.
    """
    prepared = _prepared(replace(schedule.variant, catalog="directory"))
    world = World(dict(prepared.files), chooser or Replay(schedule.interrupts), START_MS + _DAYS * DAY_MS, prepared.ids)
    world.trace = [] if traced else None
    with present(world):
        place = _placed(schedule.variant, world)
        checker = Checker(world, place)
        place.moved = checker.moved
        store = store_of(world, place, checker.deleted)

        def program(actor: Actor) -> None:
            process = Process(world, place, store)
            for number, operation in enumerate(schedule.actors[actor.index]):
                actor.operation, actor.calls = number, 0
                try:
                    world.point("begin")
                    _perform(checker, process, actor, operation)
                except Died:
                    if world.failure is not None:
                        return
                    actor.is_dead = False
                    process = Process(world, place, store)

        world.actors = [Actor(index, program) for index in range(len(schedule.actors))]
        world.run()
        if isinstance(place, Rest):
            while place.late:
                place.late.pop(0)()
        if world.failure is None:
            _finish(world, checker, Process(world, place, store), ending=ending)
    failure = None if checker.beyond_promise else world.failure
    return Result(failure, world.events, world.trace or [], checker.records, checker.beyond_promise, world._total)


def _perform(checker: Checker, process: Process, actor: Actor, operation: Operation) -> None:
    """Call an operation, and report it to the checker."""
    world = checker.world
    record = checker.begin(actor, operation)
    error: EngineError | None = None
    try:
        call(process, operation, record)
    except Died:
        checker.end(record, None, died=True)
        raise
    except EngineError as raised:
        error = raised
    except Exception as raised:
        world.fail("raw error", f"{record}: {type(raised).__name__}: {raised}")
        raise Died from raised
    checker.end(record, error)
    if world.failure is not None:
        raise Died


def call(process: Process, operation: Operation, record: Record) -> None:
    """Call the public API."""
    tag = f"{record.actor}.{record.number}"
    table = process.table(ends_of(operation)[0])
    if not operation.steps:
        step = Step(operation, tag)
        record.steps.append(step)
        step.result = KINDS[operation.kind].call(table, step)
        step.did = step.result is not None
        return
    with table.transaction() as transaction:
        for i, each in enumerate(operation.steps):
            step = Step(each, f"{tag}.{i}")
            record.steps.append(step)
            made = KINDS[each.kind].call(transaction, step)
            step.did = made is not None


def _finish(world: World, checker: Checker, process: Process, *, ending: Ending) -> None:
    """Remove orphans, and read everything that is left."""
    try:
        checker.finish()
        if ending == "checked":
            return
        world.now_ms += DEFAULT_AGE_MS + DAY_MS
        for identifier in sorted(checker.place.pointers):
            table = process.table(identifier)
            table.maintenance.remove_orphan_files(dry_run=False)
            checker.check_files(identifier)
            if ending == "read":
                checker.check_reads(table)
    except Violation as violation:
        world.fail(violation.kind, str(violation).partition(": ")[2])
    except EngineError as error:
        world.fail("unreadable", f"{type(error).__name__}: {error}")


def _placed(variant: Variant, world: World) -> Place:
    """The catalog, with the table in it."""
    pointers = dict(_prepared(replace(variant, catalog="directory")).pointers)
    place = PLACES[variant.catalog](world, pointers=pointers)
    if isinstance(place, Rest):
        for identifier, location in pointers.items():
            metadata = decode_metadata(world.files[location][0], location=location)
            place.tables[identifier] = TableState(metadata=metadata, metadata_location=location)
    return place


@cache
def _prepared(variant: Variant) -> _Prepared:
    """A table with a history of days, as the schedules of a variant find it; made in a directory catalog."""
    world = World({}, Replay({}))
    with present(world):
        place = Directory(world)
        process = Process(world, place, store_of(world, place, lambda _: None))
        _create(process, variant)
        table = process.table()
        table.append(plain_rows([(0, 1, 1.0), (1, 2, float("nan")), (2, 3, 1.0)]))
        world.now_ms += DAY_MS
        table.append(plain_rows([(0, 5, None), (3, 6, float("nan"))]))
        world.now_ms += DAY_MS
        if variant.deletes:
            table.delete("v = 3", "merge-on-read")
        table.create_branch("b")
        table.append(plain_rows([(2, 7, 1.0)]), wap_id="w0")
        return _Prepared(world.files, place.pointers, world.ids)


def _create(process: Process, variant: Variant) -> None:
    properties = {
        "commit.manifest.min-count-to-merge": str(variant.merge_count),
        "commit.retry.num-retries": "4",
        "icebench.clustering.strategy": "sort",
        "icebench.clustering.keys": "k",
        "icebench.clustering.fan-in": "2",
    }
    spec = partition_spec(SCHEMA, [(name, parse_transform(text)) for name, text in _SPECS[variant.partitioning]])
    metadata = new_table_metadata(
        SCHEMA,
        spec,
        UNSORTED,
        location=f"{WAREHOUSE}/d/t",
        properties=properties,
        format_version=variant.format_version,
        uuid=process.world.new_uuid(),
        now_ms=process.world.now_ms,
    )
    process.catalog.create_table(TABLE, metadata)
