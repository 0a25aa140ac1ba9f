import shutil
from pathlib import Path

import pytest

import icebench
from icebench.bench.tables.cache import DatasetCache
from icebench.bench.tables.reading_tables import ReadingTables
from icebench.bench.workloads.reading_files import DeleteRows

ROWS = DeleteRows(rows=1000, files=1, row_groups=2, seed=1)


@pytest.mark.parametrize("kind", ["vectors", "equality"])
def test_deletes_are_made_again_with_the_table_that_they_are_of(tmp_path: Path, kind: str) -> None:
    tables = ReadingTables(DatasetCache(tmp_path))

    def deleted() -> str:
        return tables.deleted(ROWS, kind, "random", 0.1)

    first = deleted()
    assert deleted() == first
    (base,) = tmp_path.glob("reading-deletes-????????????????")
    shutil.rmtree(base)
    assert icebench.load_table(deleted()).scan().to_arrow().num_rows == 900
