"""Raw files of workloads."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from icebench.bench.errors import ConfigError
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.raw_files import find_or_write

SOURCE = """
from dataclasses import dataclass
import pyarrow as pa
import pyarrow.parquet as pq
from icebench.bench.workloads.rows import Rows

@dataclass(frozen=True, kw_only=True)
class Numbers(Rows):
    name = "numbers"
    schema = pa.schema([("n", pa.int64())])

    def write_raw(self, folder, spark):
        pq.write_table(pa.table({"n": range(self.rows)}).slice(START), folder / "0.parquet")
        return [folder / "0.parquet"]
"""


def test_rows_are_written_again_when_another_package_changes_what_makes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, path = DatasetCache(tmp_path / "cache"), tmp_path / "numbers_of_a_package.py"

    def written(start: int) -> int:
        path.write_text(SOURCE.replace("START", str(start)))
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, path.stem, module)
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        return find_or_write(module.Numbers(rows=10), cache, spark=lambda: None).rows  # type: ignore[arg-type,return-value]

    assert (written(0), written(0), written(3)) == (10, 10, 7)


def test_rows_of_a_class_in_no_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("typed_in")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(SOURCE.replace("START", "0"), module.__dict__)
    with pytest.raises(ConfigError, match="Numbers is in no file"):
        find_or_write(module.Numbers(rows=10), DatasetCache(tmp_path), spark=lambda: None)  # type: ignore[arg-type,return-value]
