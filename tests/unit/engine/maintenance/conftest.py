"""What the tests of maintenance share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import engine


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[engine.Catalog]:
    opened = engine.load_catalog(f"{tmp_path}/wh")
    yield opened
    opened.close()
