import calendar
from datetime import date, timedelta

import pyarrow as pa
import pytest

from bench.workloads import date_dim
from bench.workloads.schemas import schema

ROWS = 73_049
FIRST = date(1900, 1, 2)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    batch = date_dim.batch(schema("date_dim", wide_decimals=False), 0, ROWS)
    batch.validate(full=True)
    return batch.to_pylist()


def months_before(day: date, months: int) -> date:
    months_since_zero = day.year * 12 + day.month - 1 - months
    year, month = divmod(months_since_zero, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def expected_row(ordinal: int) -> dict[str, object]:
    """The facts of a day by Python's own calendar."""
    day = FIRST + timedelta(days=ordinal)
    key = day.toordinal() + 1_721_425
    quarter = (day.month - 1) // 3 + 1

    def key_of(other: date) -> int:
        return other.toordinal() + 1_721_425

    def flag(*, value: bool) -> str:
        return "Y" if value else "N"

    def holiday(other: date) -> bool:
        return (other.month, other.day) in {(1, 1), (7, 4), (12, 25)}

    return {
        "d_date_sk": key,
        "d_date": day,
        "d_month_seq": (day.year - 1900) * 12 + day.month - 1,
        "d_week_seq": ordinal // 7 + 1,
        "d_quarter_seq": (day.year - 1900) * 4 + quarter,
        "d_year": day.year,
        "d_dow": day.isoweekday() % 7,
        "d_moy": day.month,
        "d_dom": day.day,
        "d_qoy": quarter,
        "d_fy_year": day.year,
        "d_fy_quarter_seq": (day.year - 1900) * 4 + quarter,
        "d_fy_week_seq": ordinal // 7 + 1,
        "d_day_name": day.strftime("%A"),
        "d_quarter_name": f"{day.year}Q{quarter}",
        "d_holiday": flag(value=holiday(day)),
        "d_weekend": flag(value=day.strftime("%A") in {"Friday", "Saturday"}),
        "d_following_holiday": flag(value=holiday(day - timedelta(days=1))),
        "d_first_dom": key_of(day.replace(day=1)),
        "d_last_dom": key_of(day.replace(day=calendar.monthrange(day.year, day.month)[1])),
        "d_same_day_ly": key_of(months_before(day, 12)),
        "d_same_day_lq": key_of(months_before(day, 3)),
        "d_current_day": flag(value=day == date(2003, 1, 8)),
        "d_current_week": flag(value=date(2003, 1, 7) <= day < date(2003, 1, 14)),
        "d_current_month": flag(value=(day.year, day.month) == (2003, 1)),
        "d_current_quarter": flag(value=(day.year, quarter) == (2003, 1)),
        "d_current_year": flag(value=day.year == 2003),
    }


def test_every_day_has_the_calendars_own_facts(rows: list[dict[str, object]]) -> None:
    assert len(rows) == ROWS
    for ordinal, row in enumerate(rows):
        identifier = row.pop("d_date_id")
        assert isinstance(identifier, str)
        assert len(identifier) == 16
        assert row == expected_row(ordinal)


def test_the_last_day() -> None:
    batch = date_dim.batch(schema("date_dim", wide_decimals=False), ROWS - 1, ROWS)
    assert batch.column("d_date").to_pylist() == [date(2100, 1, 1)]
    assert batch.schema.field("d_date").type == pa.date32()
