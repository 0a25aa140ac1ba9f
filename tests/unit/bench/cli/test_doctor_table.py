from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icebench
from tests.unit.bench.cli.test_main import exit_code

ROWS = pa.table({"id": [1, 2, 3]})


def test_every_contradiction_of_a_table_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = icebench.load_catalog(str(tmp_path)).create_table("db.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    assert exit_code("doctor", tmp_path, "db.t") == 0
    assert "db.t: 0 files that cannot be read, 0 contradictions" in capsys.readouterr().out
    metadata = table.metadata_location
    files = table.scan().plan().files["file_path"].to_pylist()
    for place in files[:2]:
        pq.write_table(pq.read_table(place), place, compression="none", use_dictionary=False)
    code = exit_code("doctor", metadata)
    shown = capsys.readouterr()
    assert code == 1, shown.err
    assert [line.partition(":")[0] for line in shown.out.splitlines()[:2]] == sorted(files[:2])
    assert "2 contradictions" in shown.out
    Path(files[2]).unlink()
    assert exit_code("doctor", metadata) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].startswith(f"no such file: {files[2]}")
    assert "1 file that cannot be read, 2 contradictions" in shown.out
    assert exit_code("doctor", tmp_path, "db.t", "x") == 2
    assert exit_code("doctor", "--warehouse", tmp_path) == 2
