from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg import expressions
from pyiceberg.expressions.parser import parse as parse_pyiceberg

import icebench
from icebench.engine.columnar.foreign_filters import to_predicate
from icebench.engine.expressions.parse import parse
from icebench.engine.plan.scan import as_predicate
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import TIMESTAMPTZ, NestedField
from icebench.errors import Invalid, Unsupported

col, field = icebench.col, pc.field
pyiceberg: Any = expressions
SCHEMA = Schema((NestedField(field_id=1, name="zoned", type=TIMESTAMPTZ),))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ((col("a") > 1) & (col("s.f") == "x") | ~col("b").is_null(), "a > 1 and s.f = 'x' or b is not null"),
        (col("a").isin([1, 2]) & col("b").isin([]), "false"),
        (col("a").between(1, col("b")), "a >= 1 and a <= b"),
        (col("x").is_nan() | (col("x") + 1).is_nan(), "x is nan or isnan(x + 1)"),
        (col("s").startswith("a"), "starts_with(s, 'a')"),
        (col("s").lower().startswith("b"), "starts_with(lower(s), 'b')"),
        (col("s").like("a%b"), "s like 'a%b'"),
        (col("s").upper().substr(2, 3) == "X", "substr(upper(s), 2, 3) = 'X'"),
        (1 - col("a") * 2 < col("b") % 3, "1 - a * 2 < b % 3"),
        ((col("a") / 2 >= -col("b").abs()), "a / 2 >= -abs(b)"),
        ((col("day").year() == 2020) | (col("ts").hour() != 3), "year(day) = 2020 or hour(ts) != 3"),
        (col("a").cast(icebench.LONG) == col("b").coalesce(0), "cast(a as bigint) = coalesce(b, 0)"),
        (col("flag") & ~col("other.flag"), "flag and not other.flag"),
        (col("day") >= dt.date(2020, 2, 29), "day >= date '2020-02-29'"),
        (col("s").length().isin([1, col("a")]), "length(s) = 1 or length(s) = a"),
        (col("a").not_null() & (col("ts").month() + col("ts").day() == 3), "a is not null and month(ts) + day(ts) = 3"),
    ],
)
def test_objects_are_what_their_text_is(made: Any, text: str) -> None:
    assert as_predicate(made, SCHEMA) == parse(text)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ("a > 1 and s.f in ('x', 'y') or not (b is null)", "a > 1 and s.f in ('x', 'y') or b is not null"),
        ("a is nan or a is not nan", "a is nan or a is not nan"),
        ("s like 'a%' and s not like 'ab%'", "s like 'a%' and not s like 'ab%'"),
        ("a not in (1, 2)", "not a in (1, 2)"),
        (pyiceberg.EqualTo("d", Decimal("1.50")), "d = 1.50"),
        (pyiceberg.GreaterThanOrEqual("day", dt.date(2020, 2, 29)), "day >= date '2020-02-29'"),
        (pyiceberg.LessThan("ts", dt.datetime.fromisoformat("2020-02-29T01:02")), "ts < timestamp '2020-02-29T01:02'"),
        (
            pyiceberg.In("zoned", [dt.datetime.fromisoformat("2020-02-29T01:02+01:00")]),
            "zoned = timestamp '2020-02-29T00:02+00:00'",
        ),
        (pyiceberg.EqualTo("u", uuid.UUID(int=7)), "u = uuid '00000000-0000-0000-0000-000000000007'"),
        (pyiceberg.AlwaysTrue(), "true"),
        (pyiceberg.Not(pyiceberg.Or(pyiceberg.IsNull("a"), pyiceberg.AlwaysFalse())), "a is not null"),
    ],
)
def test_filters_of_pyiceberg(made: Any, text: str) -> None:
    found = as_predicate(parse_pyiceberg(made) if isinstance(made, str) else made, SCHEMA)
    expected = parse(text)
    assert str(found) in (str(expected), str(expected).replace("('x', 'y')", "('y', 'x')").replace("(1, 2)", "(2, 1)"))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ((field("a") > 1) & (field("s", "f") == "x") | ~field("b").is_null(), "a > 1 and s.f = 'x' or b is not null"),
        (field("a") > 1, "a > 1"),
        (field("a").isin([1, 2]), "a in (1, 2) and a is not null"),
        (field("a").isin([1, None]), "a in (1) or a is null"),
        (pc.is_in(field("a"), pa.array([1, None]), skip_nulls=True), "a in (1) and a is not null"),
        (~pc.is_in(field("a"), pa.array([1, None]), skip_nulls=True), "not (a in (1) and a is not null)"),
        (field("a").isin([1.5, math.nan]), "(a in (1.5) or a is nan) and a is not null"),
        (field("a\n'b") > field("\u2028end: 'c'"), '"a\n\'b" > "\u2028end: \'c\'"'),
        (field("a").is_null(nan_is_null=True), "a is null or a is nan"),
        (field("a").is_nan(), "a is nan or a != a"),
        (pc.starts_with(field("s"), "ab"), "starts_with(s, 'ab')"),
        (pc.match_substring(field("s"), "a%b\\"), r"s like '%a\%b\\%' escape '\'"),
        (pc.match_like(field("s"), "a_b"), "s like 'a_b'"),
        (field("a") + field("b") * 2 >= pc.abs(field("c")), "a + b * 2 >= abs(c)"),
        (pc.utf8_lower(field("s")) == pc.coalesce(field("t"), pc.scalar("x")), "lower(s) = coalesce(t, 'x')"),
        (pc.year(field("ts")) == 2020, "year(ts) = 2020"),
        (field("day") == dt.date(2020, 2, 29), "day = date '2020-02-29'"),
        (field("day") < pa.scalar(2_932_897, pa.date32()), "day < date '+10000-01-01'"),
        (field("day").isin(pa.array([-719_529], pa.date32())), "day in (date '-0001-12-31') and day is not null"),
        (field("day") == pa.scalar(86_400_000, pa.date64()), "day = date '1970-01-02'"),
        (field("ts") < pa.scalar(7, pa.timestamp("ns", "UTC")), "ts < timestamp '1970-01-01T00:00:00.000000007Z'"),
        (field("flag") & pc.scalar(True), "flag"),
        (field("it's") == "it's 'so'", "\"it's\" = 'it''s ''so'''"),
    ],
)
def test_filters_of_pyarrow(made: Any, text: str) -> None:
    assert as_predicate(made, SCHEMA) == parse(text)


@pytest.mark.parametrize(
    ("given", "error", "reason"),
    [
        (field("a").cast(pa.int32()) == 1, Unsupported, "the function cast"),
        (pc.starts_with(field("s"), "ab", ignore_case=True), Unsupported, "without regard to case"),
        (field("a") / 2 == 1, Unsupported, "the function divide"),
        (field(0) == 1, Unsupported, "non-name field_refs"),
        (pyiceberg.BoundReference, Invalid, "is not a filter"),
        (7, Invalid, "int is not a filter"),
        ((col("a"), 1), Invalid, "tuple is not a filter"),
        (field("a") == pa.scalar(None, pa.int64()), Invalid, "null"),
    ],
)
def test_what_has_no_equal_is_refused_by_name(given: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        to_predicate(given, SCHEMA)


@pytest.mark.parametrize("behavior", [2, 3])
def test_is_in_that_is_null_for_null_is_refused(behavior: int) -> None:
    """pyarrow makes no such filter itself, but reads it."""
    remade, (buffer,) = pc.is_in(field("a"), pa.array([1])).__reduce__()
    options = pa.ipc.open_file(buffer).get_batch(0).column(0).field("null_matching_behavior")
    serialized = bytearray(buffer)
    serialized[options.buffers()[1].address - buffer.address] = behavior
    with pytest.raises(Unsupported, match="is_in that is null for null"):
        to_predicate(remade(pa.py_buffer(serialized)), SCHEMA)


def test_words_of_python_do_not_combine_filters() -> None:
    with pytest.raises(TypeError, match="in brackets"):
        bool(col("flag"))
    with pytest.raises(TypeError, match="in brackets"):
        _ = (col("a") == 1) and (col("b") == 2)
