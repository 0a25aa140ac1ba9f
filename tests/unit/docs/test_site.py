"""`make docs` builds a site without warnings, which has every public name and needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import icebench
from tests.tidy.source import REPOSITORY

_EXTERNAL = re.compile(r"""<(?:script|link|img)[^>]+(?:src|href)=["'](?:https?:)?//""")


@pytest.mark.slow
def test_the_site_has_every_public_name_and_needs_no_network(tmp_path: Path) -> None:
    command = ["-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", "html", "docs", str(tmp_path)]
    built = subprocess.run([sys.executable, *command], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = {page: page.read_text() for page in tmp_path.rglob("*.html")}
    assert not [page.name for page, text in pages.items() if _EXTERNAL.search(text)]
    reference = "".join(text for page, text in pages.items() if page.parent.name == "reference")
    described = {name for name in icebench.__all__ if callable(getattr(icebench, name)) and not name.isupper()}
    missing = {name for name in described if not re.search(rf'id="icebench\.(?:\w+\.)*{name}"', reference)}
    assert not missing
