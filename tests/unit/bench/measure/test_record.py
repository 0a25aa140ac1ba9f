import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measure.record import Failure, Record

RECORD = Record(
    run_id="r",
    time="2026-01-02T12:00:00+00:00",
    experiment="x",
    workload="tpcds",
    scale=1.0,
    layout="monthly",
    engine="icebench",
    engine_version="1",
    measurement="planning",
    case="all",
    metric="latency_cold",
    unit="s",
    samples=(0.3, 0.1, 0.2),
    counters={"files_planned": 3},
    checksum="abc",
    environment="e",
    detail={"filter": ""},
)


def test_the_summary_comes_from_the_samples() -> None:
    assert RECORD.summary["median"] == 0.2
    assert RECORD.summary["count"] == 3
    assert RECORD.key == ("monthly", "icebench", "planning", "all", "latency_cold")


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9), st.none() | st.floats(0.01, 1e4))
def test_json_and_back(samples: list[float], scale: float | None) -> None:
    record = replace(RECORD, samples=tuple(samples), scale=scale, summary={})
    assert Record.from_json(json.loads(json.dumps(record.as_json()))) == record


def test_unknown_measurements_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown measurement 'speed'; known: planning"):
        replace(RECORD, measurement="speed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"color": 1}, "unknown field 'color'"),
        ({"engine": None}, "field 'engine' is null"),
        ({"samples": []}, r"field 'samples' is \[\]"),
        ({"samples": [True]}, r"field 'samples' is \[true\]"),
        ({"samples": "1"}, "field 'samples'"),
        ({"counters": {"files": 1.5}}, "field 'counters'"),
        ({"detail": []}, "field 'detail'"),
        ({"scale": "1"}, "field 'scale'"),
        ({"checksum": 7}, "field 'checksum' is 7"),
    ],
)
def test_damaged_values_are_told(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Record.from_json({**json.loads(json.dumps(RECORD.as_json())), **change})
    without = json.loads(json.dumps(RECORD.as_json()))
    del without["unit"]
    with pytest.raises(ValueError, match="no field 'unit'"):
        Record.from_json(without)


def test_a_failure_says_where() -> None:
    everywhere = Failure(kind="X", message="no disk")
    assert str(everywhere) == "no disk"
    assert str(replace(everywhere, layout="monthly", engine="duckdb")) == "monthly/duckdb: no disk"
