"""Every operation on tables that have no rows, and on none of the rows, whatever the types of the columns are.

Arrow has no empty array of a type that holds an extension type; an operation works on the first row and raises without
one. A sample here; the whole product of types, places, states and operations in the soak.
"""

from __future__ import annotations

import pytest

from tests.property.empty_operations import READS, WRITES, check
from tests.property.empty_tables import COLUMNS, PLACES, STATES, Case, Column, transforms_of

OPERATIONS = (*READS, *WRITES)
HARD = ("uuid", "fixed", "decimal18", "timestamptz_ns", "variant", "geography", "unknown")
"""Types that Arrow, or a format, has no form of its own for."""
PARTITIONED = (
    ("uuid_top", "identity"),
    ("decimal38_top", "truncate[2]"),
    ("timestamp_ns_top", "day"),
    ("fixed_struct.v", "bucket[4]"),
    ("unknown_top", "identity"),
)


@pytest.mark.parametrize(("number", "state"), [*enumerate(STATES)], ids=list(STATES))
def test_hard_types(number: int, state: str) -> None:
    """Each place and operation in some of the states."""
    places = list(PLACES)
    for turn in (0, 3):
        place = places[(number + turn) % len(places)]
        columns = [Column(type_, place) for type_ in HARD if Column(type_, place).exists()]
        case = Case([Column("uuid", "struct"), *(c for c in columns if c.name != "uuid_struct")], state)
        for name in OPERATIONS[(number + turn) % len(STATES) :: len(STATES)]:
            check(case, name)


@pytest.mark.parametrize(("number", "state"), [*enumerate(STATES)], ids=list(STATES))
def test_partitioned_by_hard_types(number: int, state: str) -> None:
    columns = [Column(*source.removesuffix(".v").rsplit("_", 1)) for source, _ in PARTITIONED]
    case = Case(columns, state, partitioned_by=PARTITIONED)
    for name in OPERATIONS[number :: len(STATES)]:
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
