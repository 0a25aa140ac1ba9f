"""The two evaluators of the harness's truth say the same of random filters over all types."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.bench.truth.filters import to_duckdb
from icebench.bench.truth.second_opinion import SecondOpinion
from icebench.bench.truth.sql import Disputed, NoTruth, Sql
from tests.fault.campaign import SEED, scaled, sizes

ROWS = 120
PER_TABLE = 400
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
FIRST = -62_135_596_800_000_000
"""Microseconds of the year 1, the first that Python has."""
Literals = Callable[[random.Random], str]


def _moments(rng: random.Random) -> int:
    """Microseconds since 1970, near each other, at ends of days, and far away."""
    near = rng.randrange(-3, 4) + 86_400_000_000 * rng.choice([0, 0, 1, -1, 18_262, -719_162])
    return max(FIRST, rng.choice([near, near, 253_402_300_799_999_999, FIRST]))


def _nanoseconds(rng: random.Random) -> int:
    return rng.randrange(-3, 4) + rng.choice([0, 0, 86_400_000_000_000, 9_000_000_000_000_000_000])


def _text_of(nanoseconds: int, zone: str = "") -> str:
    micros, rest = divmod(nanoseconds, 1000)
    text = (EPOCH + dt.timedelta(microseconds=micros)).isoformat(timespec="microseconds")
    return f"{text}{rest:03}{zone}" if rest else f"{text}{zone}"


def _moment_text(rng: random.Random, nanoseconds: int, *, zoned: bool) -> str:
    if not zoned:
        text = _text_of(nanoseconds)
        return rng.choice([text, text.replace("T", " "), f"{text[:10]}"])
    hours = rng.choice([0, 0, 2, -5])
    shifted = nanoseconds + hours * 3_600_000_000_000
    if not -62_135_596_800_000_000_000 <= shifted < 253_402_300_800_000_000_000:
        hours, shifted = 0, nanoseconds
    zone = rng.choice(["Z", "+00:00"]) if hours == 0 else f"{'+' if hours > 0 else '-'}{abs(hours):02}:00"
    return _text_of(shifted, zone)


def _numbers(*more: str) -> Literals:
    few = [*more, "0", "1", "-1", "2", "0.5", "-2.5", "1e2", "3000000000", "-0.0", "1.10", "0.1", "99.99", "7e-1"]
    return lambda rng: rng.choice([rng.choice(few), str(rng.randrange(-5, 6))])


def _quoted(values: list[str]) -> Literals:
    return lambda rng: "'" + rng.choice(values).replace("'", "''") + "'"


@dataclass(frozen=True)
class Of:
    """A type, values of it, and literals that it is compared with."""

    kind: pa.DataType
    values: Callable[[random.Random], Any]
    literals: Literals
    number: bool = False
    text: bool = False


def _decimals(precision: int, scale: int) -> Of:
    most = 10**precision - 1
    own = [0, 1, -1, 110, -250, most, -most]
    texts = [str(Decimal(n).scaleb(-scale)) if precision < 30 else f"{n}" for n in own]
    return Of(
        pa.decimal128(precision, scale),
        lambda rng: Decimal(f"{rng.choice([*own, rng.randrange(-300, 300)])}e-{scale}"),
        _numbers(*texts),
        number=True,
    )


TEXTS = ["", "a", "ab", "A%", "a_b", "é", "ab\n", "zz", "\U0001f600"]
UUIDS = [
    "00000000-0000-0000-0000-000000000001",
    "80000000-0000-0000-0000-000000000000",
    "7fffffff-ffff-ffff-ffff-ffffffffffff",
]
BYTES = [b"", b"\x00", b"\x00\xff", b"\xff", b"ab"]
FLOATS = [0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, -2.5, 1.0, 3.25, 0.1, 1e30]


def _zoned(rng: random.Random, *, nano: bool) -> str:
    nanoseconds = _nanoseconds(rng) if nano else _moments(rng) * 1000 + rng.choice([0, 0, 1])
    return f"{rng.choice(['', 'timestamp '])}'{_moment_text(rng, nanoseconds, zoned=True)}'"


def _unzoned(rng: random.Random, *, nano: bool) -> str:
    nanoseconds = _nanoseconds(rng) if nano else _moments(rng) * 1000 + rng.choice([0, 0, 1])
    return f"{rng.choice(['', 'timestamp '])}'{_moment_text(rng, nanoseconds, zoned=False)}'"


COLUMNS: dict[str, Of] = {
    "b": Of(pa.bool_(), lambda rng: rng.random() < 0.5, lambda rng: rng.choice(["true", "false"])),
    "i": Of(pa.int32(), lambda rng: rng.choice([rng.randrange(-5, 6), 2**31 - 1, -(2**31)]),
            _numbers("2147483648", "2147483646.5"), number=True),
    "l": Of(pa.int64(), lambda rng: rng.choice([rng.randrange(-5, 6), 2**63 - 1, -(2**63)]),
            _numbers("9223372036854775807", "-9223372036854775807.5", "1e18"), number=True),
    "f": Of(pa.float32(), lambda rng: rng.choice(FLOATS), _numbers("16777217", "0.30000001192092896")),
    "d": Of(pa.float64(), lambda rng: rng.choice(FLOATS), _numbers("1e30", "0.30000000000000004"), number=True),
    "small": _decimals(4, 2), "middle": _decimals(18, 3), "great": _decimals(38, 0),
    "day": Of(pa.date32(), lambda rng: (EPOCH + dt.timedelta(microseconds=_moments(rng))).date(),
              lambda rng: _unzoned(rng, nano=False)),
    "t": Of(pa.time64("us"), lambda rng: dt.time(rng.randrange(24), 0, 0, rng.randrange(3)),
            lambda rng: f"'{rng.randrange(24):02}:00:00.00000{rng.randrange(3)}{rng.choice(['', '1', '000'])}'"),
    "ts": Of(pa.timestamp("us"), _moments, lambda rng: _unzoned(rng, nano=False)),
    "tz": Of(pa.timestamp("us", "UTC"), _moments, lambda rng: _zoned(rng, nano=False)),
    "tsn": Of(pa.timestamp("ns"), _nanoseconds, lambda rng: _unzoned(rng, nano=True)),
    "tzn": Of(pa.timestamp("ns", "UTC"), _nanoseconds, lambda rng: _zoned(rng, nano=True)),
    "s": Of(pa.string(), lambda rng: rng.choice(TEXTS), _quoted(TEXTS), text=True),
    "S": Of(pa.string(), lambda rng: rng.choice(TEXTS), _quoted(TEXTS), text=True),
    "u": Of(pa.uuid(), lambda rng: bytes.fromhex(rng.choice(UUIDS).replace("-", "")), _quoted(UUIDS)),
    "x": Of(pa.binary(), lambda rng: rng.choice(BYTES), lambda rng: f"X'{rng.choice(BYTES).hex()}'"),
    "g": Of(pa.binary(2), lambda rng: rng.choice([b"\x00\xff", b"ab", b"\xff\xff"]),
            lambda rng: f"X'{rng.choice([b'', b'ab', bytes(1), b'ab0', bytes([255] * 2)]).hex()}'"),
}  # fmt: skip
FIELDS: dict[str, Of] = {"n.i": COLUMNS["l"], "n.s": COLUMNS["s"], "n.inner.d": COLUMNS["d"]}


def all_rows(rng: random.Random) -> pa.Table:
    """Rows of all types, a seventh of all values null; structs, too."""

    def column(own: Of) -> pa.Array:
        values = [None if rng.random() < 1 / 7 else own.values(rng) for _ in range(ROWS)]
        return pa.array(values, own.kind)

    arrays = {name: column(own) for name, own in COLUMNS.items()}
    missing = pa.array([rng.random() < 0.2 for _ in range(ROWS)])
    inner = pa.StructArray.from_arrays([column(COLUMNS["d"])], ["d"], mask=missing)
    parts = [column(COLUMNS["l"]), column(COLUMNS["s"]), inner]
    arrays["n"] = pa.StructArray.from_arrays(parts, ["i", "s", "inner"], mask=missing)
    return pa.table(arrays)


def random_filter(rng: random.Random, depth: int = 2) -> str:
    """SQL of what docs/design/expressions.md has."""
    if depth and rng.random() < 0.45:
        inner = random_filter(rng, depth - 1)
        if rng.random() < 0.3:
            return f"not ({inner})"
        return f"({inner} {rng.choice(['and', 'or'])} {random_filter(rng, depth - 1)})"
    return random_test(rng)


OPERATORS = ["=", "!=", "<>", "<", "<=", ">", ">=", "<=>", "is distinct from", "is not distinct from"]


def random_test(rng: random.Random) -> str:
    name, own = rng.choice([*COLUMNS.items(), *FIELDS.items()])
    negated = rng.choice(["", "not "])
    forms: list[Callable[[], str]] = [
        lambda: f"{name} {rng.choice(OPERATORS)} {own.literals(rng)}",
        lambda: f"{own.literals(rng)} {rng.choice(OPERATORS[:7])} {name}",
        lambda: f"{name} {negated}in ({', '.join(own.literals(rng) for _ in range(rng.randrange(1, 4)))})",
        lambda: f"{name} {negated}between {own.literals(rng)} and {own.literals(rng)}",
        lambda: f"{name} is {negated}null",
    ]
    if own.text:
        forms += [
            lambda: f"{name} {negated}like '{rng.choice(['a%', '%', '_', '%b%', 'a!%', 'A!%%', '!_'])}' escape '!'",
            lambda: f"starts_with({name}, '{rng.choice(['', 'a', 'ab'])}')",
            lambda: f"{_of_text(rng, name)} {rng.choice(OPERATORS[:7])} {own.literals(rng)}",
            lambda: f"length({name}) {rng.choice(OPERATORS)} {rng.randrange(4)}",
            lambda: f"coalesce({name}, 'none') = s",
        ]
    if own.kind in (pa.float32(), pa.float64()):
        forms += [lambda: f"{name} is {negated}nan", lambda: f"isnan({name})"]
    if own.number:
        forms += [
            lambda: (
                f"cast({name} as {rng.choice(['int', 'bigint'])}) {rng.choice(OPERATORS[:7])} {rng.randrange(-3, 4)}"
            ),
            lambda: f"{_of_number(rng, name)} {rng.choice(OPERATORS[:7])} {rng.randrange(-5, 6)}",
            lambda: f"case when {name} > 0 then 1 when {name} < 0 then -1 else 0 end = {rng.randrange(-1, 2)}",
            lambda: f"{name} {rng.choice(OPERATORS[:7])} {rng.choice(['i', 'l', 'd', 'small', 'middle'])}",
        ]
    if pa.types.is_timestamp(own.kind) or pa.types.is_date(own.kind):
        part = rng.choice(["year", "month", "day"] + ["hour"] * pa.types.is_timestamp(own.kind))
        forms.append(lambda: f"{part}({name}) {rng.choice(OPERATORS[:7])} {rng.choice([1, 12, 1969, 1970, 2020, 23])}")
    if own.kind == pa.bool_():
        forms += [lambda: name, lambda: f"not {name}", lambda: f"{name} is {negated}{rng.choice(['true', 'false'])}"]
    return rng.choice(forms)()


def _of_text(rng: random.Random, name: str) -> str:
    return rng.choice(
        [
            f"lower({name})",
            f"upper({name})",
            f"substr({name}, 2)",
            f"substr({name}, 1, 1)",
            f"{name} || 'a'",
            f"trim({name})",
            f"concat({name}, s)",
            f"nullif({name}, 'a')",
        ]
    )


def _of_number(rng: random.Random, name: str) -> str:
    return rng.choice(
        [
            f"{name} + 1",
            f"{name} - i",
            f"{name} * 2",
            f"abs({name})",
            f"-{name}",
            f"{name} / 2",
            f"{name} % 3",
            f"coalesce({name}, i)",
            f"if({name} > 1, {name}, 1)",
        ]
    )


def compare(path: Path, seed: int, filters: int) -> dict[str, int]:
    """Filters of which both have an opinion, or only one; raises Disputed where they differ."""
    rng = random.Random(seed)
    rows = all_rows(rng)
    pq.write_table(rows, path)
    sql = Sql()
    sql.load("stored", str(path), {f"c{i}": i for i in range(rows.num_columns)}, source=str(path))
    types = sql.types("stored")
    known = {name: (f"c{i}", types[f"c{i}"]) for i, name in enumerate(rows.column_names)}
    counts = {"both": 0, "no truth": 0, "no definition": 0}
    for _ in range(filters):
        text = random_filter(rng)
        try:
            condition = to_duckdb(text, known)
            compared = SecondOpinion.of(text, known, files=1).check(sql, "stored", condition, source=text)
        except Disputed:
            raise
        except (NoTruth, pa.ArrowException):
            counts["no truth"] += 1
            continue
        counts["both" if compared else "no definition"] += 1
    return counts


@sizes(400, 100_000)
def test_both_keep_the_same_rows(tmp_path: Path, size: int, record_property: Callable[[str, object], None]) -> None:
    count = size if size < 1000 else scaled(size)
    total = {"both": 0, "no truth": 0, "no definition": 0}
    for number in range(-(-count // PER_TABLE)):
        found = compare(tmp_path / "rows.parquet", SEED * 1_000_000 + number, PER_TABLE)
        total = {name: total[name] + each for name, each in found.items()}
    record_property("opinions", total)
    assert total["both"] > 0.9 * sum(total.values()), total
