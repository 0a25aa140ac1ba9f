import pytest

from icebench.engine.formats.metrics_modes import (
    COUNTS,
    FULL,
    NONE,
    TRUNCATE_16,
    MetricsMode,
    metrics_modes,
    parse_mode,
)
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity
from icebench.engine.spec.types import INT, STRING, NestedField, StructType, list_type
from icebench.errors import Invalid

WIDE = Schema(
    (
        NestedField(
            field_id=1,
            name="s",
            type=StructType(tuple(NestedField(field_id=1000 + i, name=f"n{i}", type=INT) for i in range(50))),
        ),
        *(NestedField(field_id=2 + i, name=f"c{i}", type=STRING) for i in range(90)),
    )
)


def test_without_a_default_the_first_hundred_columns_get_bounds_top_level_first() -> None:
    modes = metrics_modes({}, WIDE)
    assert {modes[2 + i] for i in range(90)} == {TRUNCATE_16}
    assert [modes[1000 + i] for i in (0, 9, 10, 49)] == [TRUNCATE_16, TRUNCATE_16, NONE, NONE]
    assert 1 not in modes
    assert metrics_modes({"write.metadata.metrics.max-inferred-column-defaults": "1"}, WIDE)[3] == NONE


def test_all_of_a_nested_column_comes_before_the_next_one() -> None:
    inner = StructType((NestedField(field_id=5, name="x", type=INT),))
    first = StructType((NestedField(field_id=3, name="inner", type=inner), NestedField(field_id=4, name="y", type=INT)))
    schema = Schema(
        (
            NestedField(field_id=1, name="first", type=first),
            NestedField(field_id=2, name="then", type=list_type(6, STRING)),
        )
    )
    limited = {count: {"write.metadata.metrics.max-inferred-column-defaults": str(count)} for count in (1, 2, 3)}
    kept = {n: [i for i, mode in metrics_modes(p, schema).items() if mode != NONE] for n, p in limited.items()}
    assert kept == {1: [4], 2: [4, 5], 3: [4, 5, 6]}


def test_a_default_holds_for_all_columns_and_a_column_may_differ() -> None:
    properties = {
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.c1": "full",
        "write.metadata.metrics.column.s.n3": "truncate(4)",
        "write.metadata.metrics.column.dropped-long-ago": "full",
    }
    modes = metrics_modes(properties, WIDE)
    assert (modes[2], modes[3], modes[1003]) == (COUNTS, FULL, MetricsMode("truncate", 4))


def test_sort_keys_have_bounds_where_the_order_shows_in_them() -> None:
    keys = (
        SortField(source_ids=(2,), transform=Identity()),
        SortField(source_ids=(3,), transform=Bucket(4)),
        SortField(source_ids=(4,), transform=Identity()),
    )
    properties = {"write.metadata.metrics.default": "none", "write.metadata.metrics.column.c2": "counts"}
    modes = metrics_modes(properties, WIDE, SortOrder(keys, 1))
    assert (modes[2], modes[3], modes[4]) == (TRUNCATE_16, NONE, COUNTS)
    counted = metrics_modes({"write.metadata.metrics.default": "counts"}, WIDE, SortOrder(keys, 1))
    assert (counted[2], counted[3], counted[5]) == (TRUNCATE_16, COUNTS, COUNTS)


@pytest.mark.parametrize("text", ["some", "truncate", "truncate(0)", "truncate(-1)", ""])
def test_refuses_other_modes(text: str) -> None:
    with pytest.raises(Invalid, match="write-x"):
        parse_mode(text, "write-x")
