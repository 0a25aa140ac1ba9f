"""Times in a command line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import pyarrow as pa
import pytest

import icebench
from icebench.bench.cli.moments import Moment
from tests.unit.bench.cli.test_main import exit_code

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-01-31T12:00:00+00:00"),
        ("7d", "2026-01-24T12:00:00+00:00"),
        ("12h", "2026-01-31T00:00:00+00:00"),
        ("30m", "2026-01-31T11:30:00+00:00"),
        ("0d", "2026-01-31T12:00:00+00:00"),
        ("2026-01-02", "2026-01-02T00:00:00+00:00"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678+00:00"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00"),
    ],
)
def test_forms_of_a_time(text: str, expected: str) -> None:
    found = Moment(lambda: NOW).convert(text, None, None)
    assert found == round(datetime.fromisoformat(expected).timestamp() * 1000)


@pytest.mark.parametrize("text", ["yesterday", "7", "7w", "-7d", "999999d", "2026-02-30", ""])
def test_others_are_refused_with_the_forms(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no time; such are now, 7d, 12h"):
        Moment(lambda: NOW).convert(text, None, None)


def test_snapshots_expire_by_age(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", pa.schema([("a", pa.int64())]))
    for value in range(3):
        table.append(pa.table({"a": [value]}))
    command = ["maintain", "expire-snapshots", tmp_path, "db.t", "--retain-last", 1, "--delete", "--older-than"]
    assert exit_code(*command, "1d") == 0
    assert len(table.refresh().snapshots) == 3
    assert exit_code(*command, "now") == 0
    assert len(table.refresh().snapshots) == 1
    capsys.readouterr()
    assert exit_code(*command, "soon") == 2
    assert "--older-than" in capsys.readouterr().err
