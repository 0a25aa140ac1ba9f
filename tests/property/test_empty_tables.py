"""Every operation on tables that have no rows, and on none of the rows, whatever the types of the columns are.

Arrow has no empty array of a type that holds an extension type; an operation works on the first row and raises without
one. A sample here; the whole product of types, places, states and operations in the soak.
"""

from __future__ import annotations

import pytest

from engine.spec.data_file import FileFormat
from tests.property.empty_operations import READS, WRITES, check
from tests.property.empty_tables import COLUMNS, PLACES, STATES, Case, Column, transforms_of

OPERATIONS = (*READS, *WRITES)
HARD = ("uuid", "fixed", "decimal18", "timestamptz_ns", "variant", "geography", "unknown")
"""Types that Arrow, or a format, has no form of its own for."""
VERSIONS: list[tuple[int, FileFormat]] = [(1, "parquet"), (2, "orc"), (2, "avro")]
PARTITIONED = (
    ("uuid_top", "identity"),
    ("decimal38_top", "truncate[2]"),
    ("timestamp_ns_top", "day"),
    ("fixed_struct.v", "bucket[4]"),
    ("unknown_top", "identity"),
)


@pytest.mark.parametrize(("number", "state"), [*enumerate(STATES)], ids=list(STATES))
def test_hard_types(number: int, state: str) -> None:
    """Each operation in one of the states, beside a uuid in a struct."""
    place = list(PLACES)[number % len(PLACES)]
    columns = {Column("uuid", "struct"), *(Column(type_, place) for type_ in HARD)}
    case = Case([column for column in COLUMNS if column in columns], state)
    for name in OPERATIONS[number :: len(STATES)]:
        check(case, name)


@pytest.mark.parametrize(("number", "state"), [*enumerate(STATES)], ids=list(STATES))
def test_partitioned_by_hard_types(number: int, state: str) -> None:
    columns = [Column(*source.removesuffix(".v").rsplit("_", 1)) for source, _ in PARTITIONED]
    case = Case(columns, state, partitioned_by=PARTITIONED)
    for name in OPERATIONS[number :: len(STATES)]:
        check(case, name)


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_hard_types(place: str) -> None:
    """What takes the rows themselves: of each type at each place."""
    case = Case([column for column in COLUMNS if column.place == place and column.type_name in HARD], "no match")
    for name in ("pandas", "polars", "duckdb", "update copy-on-write", "update rows merge-on-read"):
        check(case, name)


@pytest.mark.parametrize(("version", "file_format"), VERSIONS)
def test_other_versions_and_formats(version: int, file_format: FileFormat) -> None:
    columns = [Column(type_, place) for type_ in ("uuid", "fixed") for place in ("top", "struct", "list")]
    names = [name for name in OPERATIONS if version > 1 or not ("merge-on-read" in name or "keyed" in name)]
    for number, state in enumerate(STATES):
        case = Case(columns, state, version=version, file_format=file_format)
        for name in names[number :: 3 * len(STATES)]:
            check(case, name)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("version", "file_format"), VERSIONS)
@pytest.mark.parametrize("state", STATES)
def test_other_versions_and_formats_whole(version: int, file_format: FileFormat, state: str) -> None:
    columns = [Column(type_, place) for type_ in ("uuid", "fixed", "decimal18", "timestamptz") for place in PLACES]
    case = Case(columns, state, version=version, file_format=file_format)
    for name in OPERATIONS:
        if version > 1 or not ("merge-on-read" in name or "keyed" in name):
            check(case, name)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_type_at_each_place(column: Column) -> None:
    for state in STATES:
        case = Case([column], state)
        for name in OPERATIONS:
            check(case, name)
        for transform in transforms_of(column):
            case = Case([column], state, partitioned_by=[(column.source, transform)])
            for name in OPERATIONS:
                check(case, name)
