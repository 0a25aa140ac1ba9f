from __future__ import annotations

import uuid
from decimal import Decimal

import pytest
from sqlglot.tokens import Tokenizer

from icebench.engine.expressions.parse import parse
from icebench.engine.expressions.predicate import (
    FALSE,
    TRUE,
    Compare,
    In,
    IsNaN,
    IsNull,
    Not,
    Predicate,
    StartsWith,
    equal,
    greater_equal,
    is_in,
    is_nan,
    is_null,
    less_equal,
    not_null,
    starts_with,
)
from icebench.engine.expressions.scalar import LiteralValue
from icebench.engine.expressions.temporal_literals import TemporalLiteral, parse_temporal
from icebench.errors import Invalid, Unsupported

UUID_TEXT = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("a == 1", equal("a", 1)),
        ("a <> 1", Compare("a", "!=", 1)),
        ("1 < a", Compare("a", ">", 1)),
        ("(a) >= (-2.5)", Compare("a", ">=", Decimal("-2.5"))),
        ("a <=> null", IsNull("a")),
        ("a is not distinct from 5", not_null("a") & equal("a", 5)),
        ("a is distinct from 5", ~(not_null("a") & equal("a", 5))),
        ("a in (1, 2, 1)", In("a", (1, 2))),
        ("a not in ('x')", Not(In("a", ("x",)))),
        ("a between 1 and 2", greater_equal("a", 1) & less_equal("a", 2)),
        ("a not between 1 and 2", ~(greater_equal("a", 1) & less_equal("a", 2))),
        ("a is null", IsNull("a")),
        ("a is not null", Not(IsNull("a"))),
        ("a is nan", IsNaN("a")),
        ("not isnan(a)", Not(IsNaN("a"))),
        ("flag", equal("flag", True)),
        ("flag is true", not_null("flag") & equal("flag", True)),
        ("flag is not false", ~(not_null("flag") & equal("flag", False))),
        ("starts_with(a, 'x')", StartsWith("a", "x")),
        ("a like 'abc%'", StartsWith("a", "abc")),
        ("a like 'abc%%'", StartsWith("a", "abc")),
        ("a not like 'abc%'", Not(StartsWith("a", "abc"))),
        ("a like 'abc'", equal("a", "abc")),
        ("a like '5!%%' escape '!'", StartsWith("a", "5%")),
        ("a like 'x!_' escape '!'", equal("a", "x_")),
        ("a like '%'", StartsWith("a", "")),
        ("true", TRUE),
        ("1 = 1", TRUE),
        ("'a' > 'b'", FALSE),
        ("a = 1 -- a remark", equal("a", 1)),
        ('"odd name".b = 1', equal("odd name.b", 1)),
        ("`a`.`b.c` = 1", equal("a.b.c", 1)),
        ("a.b.c.d.e.f = 1", equal("a.b.c.d.e.f", 1)),
        ("date = 5 and value = 6", equal("date", 5) & equal("value", 6)),
        ("a = 1 and b = 2 or not c = 3", (equal("a", 1) & equal("b", 2)) | ~equal("c", 3)),
    ],
)
def test_filters(text: str, predicate: Predicate) -> None:
    assert parse(text) == predicate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("99999999999999999999", 99999999999999999999),
        ("1e3", Decimal(1000)),
        ("-.5", Decimal("-0.5")),
        ("'it''s \\n'", "it's \\n"),
        ("X'00fF'", b"\x00\xff"),
        ("DATE '2024-02-29'", parse_temporal("2024-02-29")),
        ("TIME '10:00'", parse_temporal("10:00")),
        ("TIMESTAMP '2024-02-29 10:00:00.123456789'", parse_temporal("2024-02-29T10:00:00.123456789")),
        ("TIMESTAMP '2024-02-29 10:00:00+01:00'", parse_temporal("2024-02-29T09:00:00Z")),
        ("timestamp '1970-01-01'", TemporalLiteral("timestamp", 0)),
        (f"UUID '{UUID_TEXT}'", uuid.UUID(UUID_TEXT)),
        ("cast('5' as int)", 5),
        ("cast(7.0 as bigint)", 7),
        ("cast('1.50' as decimal(10, 2))", Decimal("1.50")),
        ("cast('0.1' as double)", 0.1),
        ("cast('-Infinity' as double)", float("-inf")),
        ("cast(0.1 as float)", 0.10000000149011612),
        ("cast('1.000000059604644775390625000001' as float)", 1 + 2.0**-23),
        ("cast('-Infinity' as float)", float("-inf")),
        ("cast(cast(0.1 as float) as double)", 0.10000000149011612),
        ("cast('abc' as string)", "abc"),
        ("cast('abc' as binary)", b"abc"),
        ("'2024-02-29'::date", parse_temporal("2024-02-29")),
        ("-9999999999999999999999999999.9999999999", Decimal("-9999999999999999999999999999.9999999999")),
        ("cast('123456789012345678901234567890.50' as decimal(38, 1))", Decimal("123456789012345678901234567890.50")),
        ("1e999999999", Decimal("1e999999999")),
    ],
)
def test_literals(text: str, value: LiteralValue) -> None:
    found = parse(f"a = {text}")
    assert isinstance(found, Compare)
    assert found.literal == value
    assert type(found.literal) is type(value)
    assert isinstance(value, float) or parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("a =", "column 3"),
        ("a = 1 b", "column 7"),
        ("a = 'x", "cannot parse"),
        ("a ! 3", "cannot parse"),
        ("a >", "cannot parse the filter 'a >': something is missing at line 1, column 3$"),
        ("a = 1 and", "column 9"),
        ("a in (1", "column 7"),
        ("a in ()", "no values"),
        ("a = null", "is null"),
        ("a in (1, null)", "is null"),
        ("a = cast('nan' as double)", "is nan"),
        ("a = X'0'", "hexadecimal"),
        (f"a = cast('{'-' * 32}' as uuid)", "is not a uuid"),
        ("a = DATE '2024-13-01'", "calendar"),
        ("a like 5", "single quotes"),
        ("a like b || 'x'", "single quotes"),
        ("a like 'x!y' escape '!'", "ordinary character"),
        ("select 1", "cannot parse"),
        ("'x' is null", "column is expected"),
        ("starts_with(a, 5)", "starts with"),
    ],
)
def test_what_is_no_filter(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "a in (select 1)", "(a, b) in ((1, 2))", "a ilike 'x%'", "a like 'a\\%'", "a rlike 'x'",
        "lower(a) like 'a\\%'", "sqrt(a) = 1", "substr(a, 0, 1) = 'x'", "substr(a, b) = 'x'",
        "extract(epoch from a) = 1",
        "try_cast('1' as int) = a", "a = cast(2.5 as int)",
        "a = cast(2147483648 as int)", "a = cast(9223372036854775808 as bigint)",
        "a = cast('1.234' as decimal(3, 2))", "a = cast('1e40' as bigint)", "a = cast('inf' as decimal(3, 2))",
        "a = cast(1 as decimal(1000000000, 3))", "a = cast(1e39 as float)", "a = ?",
        "a = cast('abc' as varchar(2))", "a = current_date", "a[0] = 1", "a = 1; b = 2", "exists(a)", "true = 1",
        "a = cast(1 as decimal(a))", "a + 1 = cast(b as decimal(9, x))", "a = cast(1 as decimal('5', 1))",
        "a = cast('2024-02-29T10:00:00' as date)", "a between symmetric 2 and 1",
    ],
)  # fmt: skip
def test_sql_that_a_filter_cannot_be(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "a < b", "a = 1 + 1", "a + 1 = -2", "-a < 1", "length(a) = 1", "a like '%x'", "a like '_c'",
        "a not like '%x_'",
        "a like '%100!%%!_\\' escape '!'", "cast(a as int) = 1", "case when a then b end", "lower(a) in ('x', b)",
        "a between b and c.d", "a is not distinct from b", "isnan(a + 1)", "coalesce(a, b) is null",
        "(a < b) is true",
        "substr(a, 2, 3) = 'x'", "not (a < b or year(c) = 2020)", "hour(a) % 2 = 0", "a || 'x' != b",
        "starts_with(upper(a), 'X')", "cast(a as bigint) = 1 and cast(b as varchar) = 'x'",
        "a = date '2024-02-29' or a < b",
        "extract(month from a) = dayofmonth(b)", "a + 1e0 = 1.0", "-(9223372036854775808) + a = 1",
        "coalesce(a, X'00ff') = b", "coalesce(a, time '10:00:00') < b",
        "coalesce(a, timestamp '2020-01-01T00:00:00Z') < b",
        "coalesce(a, uuid 'f79c3e09-677c-4bbd-a479-3f349cb785e7') = b",
        "a * cast('-Infinity' as double) > b", "coalesce(a, cast('no date' as date)) = b",
    ],
)  # fmt: skip
def test_the_text_of_what_rows_must_decide_is_read_back(text: str) -> None:
    found = parse(text)
    assert parse(str(found)) == found
    assert "Computed(" in repr(found)


def test_a_search_is_pruned_by_its_prefix() -> None:
    assert repr(parse("a like 'ab%c'")).startswith("And(children=(StartsWith(column='a', prefix='ab'), Computed(")


def test_long_filters() -> None:
    assert len(parse(" or ".join(f"a = {i}" for i in range(3000))).children) == 3000  # type: ignore[attr-defined]
    with pytest.raises(Invalid, match="nested too deeply"):
        parse("(" * 2000 + "a = 1" + ")" * 2000)


WORDS = sorted({word.lower() for word in Tokenizer.KEYWORDS if word.isidentifier()} | {"nan", "isnan", "notnull"})


@pytest.mark.parametrize("word", WORDS)
def test_a_column_may_have_the_name_of_any_word(word: str) -> None:
    for filter in (equal(word, 1), is_null(word), is_in(f"a.{word}", [1, 2]), ~equal(word.upper(), "x")):
        assert parse(str(filter)) == filter
    for filter in (starts_with(word, "x"), is_nan(word)):
        assert parse(str(filter & equal("b", 1))) == filter & equal("b", 1)
