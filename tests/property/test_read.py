"""What the reader gives is what the row-level model says, whatever the batches, threads, filters and deletes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.columnar.schemas import to_arrow_schema
from icebench.engine.expressions.bound import (
    BoundAnd,
    BoundCompare,
    BoundIn,
    BoundIsNull,
    BoundOr,
    BoundPredicate,
    Column,
)
from icebench.engine.formats.parquet import footer as parquet_footer
from icebench.engine.formats.parquet import source as parquet
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from icebench.engine.read import joining, row_group, row_group_stream
from icebench.engine.read.plans import count_rows, planned_files, read_plan
from icebench.engine.runtime.counters import ROWS_DECODED, ROWS_DELETED, ROWS_RETURNED
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.metadata_columns import DELETED, FILE, POS
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import PrimitiveType
from tests.property import table_model as model


@pytest.fixture(autouse=True, scope="module", params=["kernels", "pieces"])
def reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Footers read with the kernels, those without unwanted columns among them, and files joined; and as in a process
    that has none, each file alone, its row groups piece by piece."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "kernels":
            assert LIST_CHUNKS.load()
            assert SLIM_FOOTER.load()
            patch.setattr(parquet_footer, "_FEWEST_BYTES", 0)
        else:
            for kernel in (LIST_CHUNKS, SLIM_FOOTER):
                patch.setattr(kernel, "should_use", lambda _: False)
            patch.setattr(row_group, "_LEAST_ROWS", 2)
            for limit in ("_MOST_ROWS", "_MOST_FILTERED_ROWS"):
                patch.setattr(row_group, limit, 2)
            patch.setattr(row_group_stream, "_WHOLE_BYTES", 0)
            patch.setattr(parquet, "_AT_ONCE_BYTES", 0)
            patch.setattr(joining, "_MOST_FILES", 1)
        yield


@st.composite
def filters(draw: st.DrawFn) -> BoundPredicate:
    """Filters on the current schema, nested and added columns among them."""

    def leaf(field_id: int) -> st.SearchStrategy[BoundPredicate]:
        type_ = model.NEW.primitive(field_id)
        assert isinstance(type_, PrimitiveType)
        column = Column(field_id, model.NEW.name_of[field_id], type_)
        literals = model.VALUES[field_id].filter(lambda v: v is not None and v == v)  # noqa: PLR0124 - NaN has tests of its own
        operators = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
        return (
            st.builds(BoundCompare, st.just(column), operators, literals)
            | st.builds(BoundIsNull, st.just(column), st.booleans())
            | st.builds(
                lambda members, negated: BoundIn(column, tuple(sorted(members)), negated),
                st.lists(literals, min_size=2, max_size=2, unique=True),
                st.booleans(),
            )
        )

    leaves = st.sampled_from((model.K, model.S, model.F, model.D, model.ADDED, model.A, model.C)).flatmap(leaf)
    return draw(leaves | st.tuples(leaves, leaves).map(BoundAnd) | st.tuples(leaves, leaves).map(BoundOr))


projections = st.lists(st.sampled_from(model.NEW.fields), unique=True).map(
    lambda fields: model.with_fields(model.NEW, fields)
)


@given(
    table=model.tables(),
    projection=projections,
    residual=st.none() | filters(),
    batch_rows=st.sampled_from([1, 2, 3, 1000]),
    threads=st.sampled_from([1, 2]),
)
def test_gives_the_rows_of_the_model(
    table: model.ModelTable, projection: Schema, residual: BoundPredicate | None, batch_rows: int, threads: int
) -> None:
    batches, counters = table.read(projection, residual, batch_rows=batch_rows, threads=threads)
    expected = table.expected(residual)
    assert all(batch.schema.equals(to_arrow_schema(projection), check_metadata=True) for batch in batches)
    assert all(0 < batch.num_rows <= batch_rows for batch in batches)
    assert sum(batch.num_rows for batch in batches) == len(expected)
    assert model.same_rows(model.given(projection, batches), model.narrowed(expected, projection))
    counted = counters.as_dict()
    assert counted[ROWS_RETURNED] == len(expected)
    assert counted[ROWS_DECODED] <= sum(len(w.rows) for w in table.data)
    if residual is None:
        assert counted[ROWS_DELETED] == sum(not live for file in table.live.values() for live in file)


@given(table=model.tables(), residual=st.none() | filters(), batch_rows=st.sampled_from([1, 3, 1000]))
def test_positions_are_physical_and_deleted_rows_can_be_seen(
    table: model.ModelTable, residual: BoundPredicate | None, batch_rows: int
) -> None:
    projection = Schema((POS, DELETED, FILE))
    batches, _ = table.read(projection, residual, batch_rows=batch_rows)
    found = [(row["_file"], row["_pos"], row["_deleted"]) for batch in batches for row in batch.to_pylist()]
    everything = model.ModelTable(store=table.store, data=table.data)
    everything.live = {path: [True] * len(live) for path, live in table.live.items()}
    expected = []
    for written in table.data:
        one = model.ModelTable(data=[written])
        for position, live in enumerate(table.live[written.file.file_path]):
            one.live = {written.file.file_path: [p == position for p in range(len(written.rows))]}
            if one.expected(residual):
                expected.append((written.file.file_path, position, not live))
    assert found == expected


@given(table=model.tables(), residual=st.none() | filters())
def test_a_plan_is_read_as_its_files_are(table: model.ModelTable, residual: BoundPredicate | None) -> None:
    plan = table.plan(model.NEW, residual)
    assert list(planned_files(plan)) == table.reads(residual)
    batches = read_plan(plan, table.store, runner=LocalRunner(1))
    assert model.same_rows(model.given(model.NEW, list(batches)), model.narrowed(table.expected(residual), model.NEW))
    assert count_rows(plan, table.store, runner=LocalRunner(1)) == len(table.expected(residual))
