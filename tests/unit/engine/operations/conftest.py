"""What the tests of operations share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import icebench


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[icebench.Catalog]:
    opened = icebench.load_catalog(f"{tmp_path}/wh")
    yield opened
    opened.close()
