"""Plays a history: makes the table, lets the engines change it alternately, and compares what all of them read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa
import pytest

import icebench
from icebench.engine.codec.metadata_json.partitioning import partition_spec_to_json
from icebench.engine.codec.metadata_json.schema import schema_to_json
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.spec.partitioning import partition_spec
from tests.interop.histories.accounts import check_summaries
from tests.interop.histories.actor_java import Java, lacks_spark_type
from tests.interop.histories.actor_ours import Ours
from tests.interop.histories.actor_pyiceberg import PyIceberg
from tests.interop.histories.filters import Row, Where
from tests.interop.histories.language import (
    Actor,
    Append,
    Engine,
    Expire,
    History,
    SameRows,
    Step,
    Transaction,
)
from tests.interop.histories.model import Model, State, bag, check_rows
from tests.interop.histories.places import Place
from tests.interop.histories.readers import Readers, rows_of
from tests.interop.histories.shapes import ON_WRITE

LINEAGE = ("_row_id", "_last_updated_sequence_number")
CODA_ID = 900
V3_REFUSED = "Cannot write manifest for table version: 3|Writing V3 is not yet supported"


@dataclass
class Play:
    """One history in one format version.

    Args:
        history: What happens.
        version: The format version that the table begins with.
        place: The catalog that the engines share.
    """

    history: History
    version: int
    place: Place
    model: Model = field(init=False)
    ids: dict[str, int] = field(default_factory=dict)
    states: dict[int, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model = Model(tuple(self.history.columns))
        self.name = f"db.t{next(self.place.numbers)}"
        self._create()
        self.table = self.place.ours.load_table(self.name)
        java = Java(self.place.spark, self.place.spark_catalog, self.table, self.ids)
        self.actors: dict[Engine, Actor] = {
            "ours": Ours(self.table, self.ids),
            "java": java,
            "pyiceberg": PyIceberg(self.place.pyiceberg, self.table, self.ids),
        }
        self.readers = Readers(self.place.spark, self.table, java, self.place.pyiceberg)

    def run(self) -> None:
        """All of it; an AssertionError says at which step what differed."""
        # The coda's rows have the columns that there are by then.
        for number, step in enumerate(chain(self.history.steps, self._coda())):
            with saying(f"step {number + 1}: {step.engine} makes {step.change}"):
                self._step(step)
        self._check_readers()
        self._check_probes()
        self._check_the_past()
        if self.table.metadata.format_version >= 3:
            self._check_lineage()

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _create(self) -> None:
        history = self.history
        fields = [pa.field(name, type_, name not in history.required) for name, type_ in history.columns.items()]
        schema = from_arrow_schema(pa.schema(fields))
        spec = partition_spec(schema, [(c, icebench.parse_transform(t)) for c, t in history.partition])
        properties = {"format-version": str(self.version), **ON_WRITE, **history.properties}
        texts = json.dumps(schema_to_json(schema)), json.dumps(partition_spec_to_json(spec))
        self.place.create(history.created_by, self.name, (schema, spec), texts, properties)

    def _coda(self) -> Iterator[Step]:
        for place, who in enumerate(self.history.coda):
            yield Step(who, Append([dict.fromkeys(self.model.columns) | {"id": CODA_ID + place}]))

    def _step(self, step: Step) -> None:
        before = self._lineage() if isinstance(step.change, SameRows) else None
        self.actors[self._maker(step)].perform(step.change)
        step.change.apply(self.model)
        table = self.table.refresh()
        head = table.current_snapshot
        if isinstance(step.change, SameRows) and head is not None and head.snapshot_id not in self.states:
            # The rows are those of before, and the schema is that of now.
            self.model.branches["main"] = self.model.state()
        if step.label is not None:
            assert head is not None
            self.ids[step.label], self.model.labels[step.label] = head.snapshot_id, self.model.branches["main"]
        if head is not None:
            self.states.setdefault(head.snapshot_id, self.model.branches.get("main", self.model.state()))
        for branch in self.model.branches:
            with saying(f"we read branch {branch}"):
                check_rows(self._found(branch), self.model.state(branch).rows)
        assert table.scan().to_arrow().schema.names == list(self.model.columns)
        check_summaries(table, self.history.unaccounted)
        if before is not None and self._lineage_was_there(step, before):
            assert self._lineage() == before, "row ids or sequence numbers changed"

    def _maker(self, step: Step) -> Engine:
        """Who makes a change. PyIceberg writes nothing of format version 3 yet: it has to say so, and another stands
        in; that is also how we learn of the day it does."""
        if step.engine != "pyiceberg" or self.table.metadata.format_version < 3:
            return step.engine
        with pytest.raises((ValueError, NotImplementedError), match=V3_REFUSED):
            self.actors["pyiceberg"].perform(step.change)
        return "ours" if isinstance(step.change, Transaction) else "java"

    def _lineage_was_there(self, step: Step, before: list[str] | None) -> bool:
        return self.table.metadata.format_version >= 3 and before is not None and not isinstance(step.change, Expire)

    def _found(self, branch: str) -> list[Row]:
        return rows_of(self.table.scan(ref=None if branch == "main" else branch).to_arrow())

    def _lineage(self) -> list[str] | None:
        """Each row's id and last update, of a v3 table."""
        if self.table.metadata.format_version < 3:
            return None
        return bag(self.table.scan(columns=["id", *LINEAGE]).to_arrow().to_pylist())

    # ---- the end -------------------------------------------------------------------------------------------------

    def _check_readers(self, where: Where | None = None) -> None:
        rows = self.model.state().rows
        expected = rows if where is None else [row for row in rows if where(row)]
        for name, read in self.readers.by_name.items():
            with saying(f"{name} reads {where.text if where else 'all'} at the end"):
                if name in self.history.refusals:
                    with pytest.raises(Exception, match=self.history.refusals[name]):
                        read(None if where is None else where.text)
                    continue
                found = read(None if where is None else where.text)
                if name not in self.history.wrong:
                    check_rows(found, expected)
                elif where is None:
                    assert bag(found) != bag(expected), f"no longer wrong: {self.history.wrong[name]}"

    def _check_probes(self) -> None:
        for where in self.history.probes:
            self._check_readers(where)

    def _check_the_past(self) -> None:
        """The first snapshot, one of the middle and the last but one, by us and by Java; tags by us."""
        alive = [i for i in self.states if i in self.table.metadata.snapshot_by_id]
        chosen = sorted({0, len(alive) // 2, max(len(alive) - 2, 0)}) if alive else []
        for place in chosen:
            for reader in ("ours", "Iceberg Java"):
                if reader in self.history.refusals:
                    continue
                with saying(f"{reader} reads snapshot {place + 1} of {len(alive)}"):
                    check_rows(self.readers.by_name[reader](snapshot_id=alive[place]), self.states[alive[place]].rows)
        for tag, state in self.model.tags.items():
            check_rows(rows_of(self.table.scan(ref=tag).to_arrow()), state.rows)

    def _check_lineage(self) -> None:
        """Row ids are unique, and those that Java reads."""
        if lacks_spark_type(self.table.schema()):
            return
        found = self.table.scan(columns=["id", *LINEAGE]).to_arrow()
        numbers = found["_row_id"].drop_null().to_pylist()
        assert len(set(numbers)) == len(numbers)
        theirs = self.place.spark.sql(f"select id, {', '.join(LINEAGE)} from {self.readers.java.name}").toArrow()
        check_rows(found.to_pylist(), theirs.to_pylist())


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Adds to an exception where it happened."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise
