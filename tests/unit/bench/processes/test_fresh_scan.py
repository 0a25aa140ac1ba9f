"""What is inside the times of fresh processes that scan."""

import pytest

from icebench.bench.processes.fresh_scan import main


class Opening(Exception):
    """The table is opened."""


@pytest.mark.parametrize(
    ("reader", "opens"),
    [
        ("icebench", "icebench.load_table"),
        ("pyiceberg", "pyiceberg.table.StaticTable.from_metadata"),
        ("polars", "polars.scan_iceberg"),
        ("duckdb", "icebench.bench.engines.duckdb_engine.reader"),
    ],
)
def test_the_first_scan_opens_the_table(reader: str, opens: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(opens.partition(".")[0])
    marks: list[float] = []

    def opening(*_: object) -> None:
        raise Opening

    def cpu() -> float:
        marks.append(0.0)
        return 0.0

    monkeypatch.setattr(opens, opening)
    with pytest.raises(Opening):
        main([reader, "m"], cpu=cpu)
    assert len(marks) == 1
