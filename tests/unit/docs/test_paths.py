"""Documents name files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tidy.source import REPOSITORY, tracked_files

DOCUMENTS = [REPOSITORY / path for path in tracked_files() if path.endswith(".md") and path != "CHANGELOG.md"]
MADE_LATER = {"datasets/cache"}
_PATH = re.compile(r"`((?:engine|bench|tests|datasets|docs)/[\w./-]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_named_files_exist(document: Path) -> None:
    named = set(_PATH.findall(document.read_text())) - MADE_LATER
    assert not [path for path in sorted(named) if not (REPOSITORY / path).exists()]
