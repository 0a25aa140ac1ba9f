from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from icebench.bench.errors import ConfigError
from icebench.bench.workloads.dsdgen import write_store_sales


@pytest.mark.parametrize("name", ["tpcds/store_sales/metadata/v1.metadata.json", "dsdgen-store_sales.parquet"])
def test_what_is_there_stays(tmp_path: Path, name: str) -> None:
    """It may be somebody's table."""
    theirs = tmp_path / name
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("theirs")
    session: Any = None  # it is not asked for anything
    with pytest.raises(ConfigError, match="exists; remove it, or choose another directory"):
        write_store_sales(session, tmp_path, catalog="c", scale=0.01)
    assert theirs.read_text() == "theirs"
