"""Secondary indexes against brute force: a plan never loses a file with a matching row, whatever was built when."""

from __future__ import annotations

import math
import shutil
import tempfile
import uuid
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.codec.array_views import bytes_array_of
from icebench.engine.columnar.scalars import to_arrow_array
from icebench.engine.file_indexes.blob import Hashes, build_index, decode_index, encode_index, joined_index
from icebench.engine.file_indexes.lookup import LoadedIndex
from icebench.engine.file_indexes.value_hashes import bytes_hashes, hash_family, literal_hashes, value_hashes
from icebench.engine.operations.row_changes import Mode
from icebench.engine.spec.schema_evolution import SchemaUpdate
from icebench.engine.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    PrimitiveType,
)

LONGS = st.sampled_from([0, 1, -1, 7, 2**31 - 1, -(2**31), 2**40])
FLOATS = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, 0.10000000149011612])
DECIMALS = st.sampled_from([Decimal("0.00"), Decimal("1.25"), Decimal("-999.99")])
TYPES: list[tuple[PrimitiveType, list[PrimitiveType], st.SearchStrategy[Any]]] = [
    (INT, [LONG], LONGS.filter(lambda v: abs(v) < 2**31)),
    (FLOAT, [DOUBLE], FLOATS),
    (DecimalType(5, 2), [DecimalType(12, 2), DecimalType(38, 2)], DECIMALS),
    (DecimalType(38, 2), [], DECIMALS | st.just(Decimal(10) ** 30)),
    (STRING, [], st.sampled_from(["", "a", "b", "\U0001f9ca", "a" * 300])),
    (BINARY, [], st.sampled_from([b"", b"\0", b"\xff\0"])),
    (FixedType(2), [], st.sampled_from([b"\0\0", b"ab"])),
    (UUID, [], st.sampled_from([uuid.UUID(int=0), uuid.UUID(int=2**127 + 5)])),
    (BOOLEAN, [], st.booleans()),
    (DATE, [], st.sampled_from([0, -1, 19000])),
    (TIME, [], st.sampled_from([0, 1])),
    (TIMESTAMP, [], st.sampled_from([0, 10**15])),
    (TIMESTAMPTZ_NS, [], st.sampled_from([0, 10**18])),
]


@settings(max_examples=150)
@given(
    chosen=st.sampled_from(TYPES).flatmap(
        lambda t: st.tuples(st.just(t), st.lists(st.lists(st.none() | t[2], max_size=5), min_size=1, max_size=5), t[2])
    ),
    kind=st.sampled_from(["bloom", "values"]),
    cut=st.integers(0, 5),
    kept=st.lists(st.booleans(), min_size=5, max_size=5),
)
def test_a_file_with_the_value_is_never_excluded(
    chosen: tuple[tuple[PrimitiveType, list[PrimitiveType], Any], list[list[Any]], Any],
    kind: Literal["bloom", "values"],
    cut: int,
    kept: list[bool],
) -> None:
    """Built at once or in two parts, some files left out in between, looked up as the column is now."""
    (type_, promoted, _), files, sought = chosen
    hashes = [np.unique(value_hashes(to_arrow_array(type_, rows))) for rows in files]
    paths = [f"/f{i}" * (i + 1) for i in range(len(files))]

    def built(start: int, end: int) -> Any:
        part: list[Hashes] = hashes[start:end]
        return build_index(kind, paths[start:end], list(range(len(files)))[start:end], part, 0.01)

    old, new = built(0, cut), built(cut, len(files))
    stays = np.array(kept[: old.count], np.bool_)
    index = decode_index(encode_index(joined_index(old, stays, new)))
    own = bytes_array_of([p.encode() for p in paths])
    numbers = LoadedIndex.of(index).files(own, np.arange(len(files)))
    assert [n >= 0 for n in numbers] == [*stays.tolist(), *[True] * new.count]
    for now in (type_, *promoted):
        assert hash_family(now) == hash_family(type_)
        found = index.may_hold(literal_hashes(now, (sought,)))
        for number, rows in zip(numbers.tolist(), files, strict=True):
            if number >= 0 and any(_equal(row, sought) for row in rows):
                assert found[number]
            elif number >= 0 and kind == "values":
                assert not found[number]


def _equal(left: Any, right: Any) -> bool:
    """Equality of filters, with NaN equal to NaN."""
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left is not None and left == right)


@given(values=st.lists(st.binary(max_size=40), max_size=20), before=st.binary(max_size=3))
def test_byte_strings_have_one_hash_each(values: list[bytes], before: bytes) -> None:
    """Wherever they lie, whatever is beside them."""
    ends = np.cumsum([len(before), *map(len, values)])
    found = bytes_hashes(ends, np.frombuffer(before + b"".join(values) + before, np.uint8)).tolist()
    alone = [bytes_hashes(np.array([0, len(v)]), np.frombuffer(v, np.uint8)).tolist() for v in values]
    assert [[each] for each in found] == alone
    assert len(set(found)) == len(set(values))


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(0, 3),
            "f": st.none() | st.sampled_from([0.0, -0.0, math.nan, 1.5]),
            "s": st.none() | st.sampled_from(["", "a", "b"]),
            "d": st.none() | DECIMALS,
        }
    ),
    min_size=1,
    max_size=4,
)
SCHEMA = pa.schema(
    [
        pa.field("n", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("d", pa.decimal128(5, 2)),
    ]
)
FILTERS = (
    "n = 1", "n in (0, 2)", "f = 0", "f = -0.0", "f is nan", "f = 1.5", "s = ''", "s in ('a', 'zz')", "d = 1.25",
    "n = 1 and s = 'a'", "n = 1 or s = 'b'", "not n = 1", "n = 1 or f is null", "n not in (1, 2)", "d in (0, -999.99)",
)  # fmt: skip


@settings(max_examples=15)
@given(data=st.data())
def test_plans_of_a_table_keep_every_matching_file(data: st.DataObject) -> None:
    """Appends, deletes, rewrites, promotions and indexes in any order; metrics are off, so that indexes decide."""
    place = tempfile.mkdtemp()
    catalog = icebench.load_catalog(place)
    properties = {"write.metadata.metrics.default": "none"}
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    plain = catalog.create_table("db.plain", SCHEMA, properties=properties)
    built: set[str] = set()
    try:
        for _ in range(data.draw(st.integers(2, 7))):
            step = data.draw(st.sampled_from(["append", "append", "append", "index", "delete", "promote"]))
            if step == "append":
                rows = pa.Table.from_pylist(data.draw(ROWS), schema=SCHEMA)
                for each in (table, plain):
                    each.append(rows.cast(each.scan().to_arrow().schema))
            elif step == "index" and table.current_snapshot is not None:
                column = data.draw(st.sampled_from(["n", "f", "s", "d"]))
                result = table.maintenance.build_index(column, kind=data.draw(st.sampled_from(["bloom", "values"])))
                assert result.files == table.scan().plan().files.num_rows
                built.add(column)
            elif step == "delete":
                mode: Mode = data.draw(st.sampled_from(["copy-on-write", "merge-on-read"]))
                for each in (table, plain):
                    each.delete("n = 2", mode)
            elif step == "promote":
                for each in (table, plain):
                    each.update_schema(_promoted)
        for filter in data.draw(st.lists(st.sampled_from(FILTERS), min_size=5, max_size=5, unique=True)):
            found, expected = table.scan(filter), plain.scan(filter)
            assert sorted(map(repr, found.to_arrow().to_pylist())) == sorted(map(repr, expected.to_arrow().to_pylist()))
            counters = found.plan().counters
            assert (
                counters["files_planned"] + counters["entries_skipped_by_index"]
                == (expected.plan().counters["files_planned"])
            )
            assert built or not counters["entries_skipped_by_index"]
            assert "indexes_unusable" not in counters
    finally:
        catalog.close()
        shutil.rmtree(place)


def _promoted(update: SchemaUpdate) -> None:
    update.promote_column("n", icebench.LONG)
    update.promote_column("f", icebench.DOUBLE)
    update.promote_column("d", DecimalType(12, 2))
