"""What a notebook shows of the engine's objects, in a real browser: markup as Jupyter puts it into a cell."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from tests.services.browser import MISSING, find_browser
from tests.services.devtools import FLAGS

BROWSER = find_browser()

pytestmark = [
    pytest.mark.interop,
    # In CI they fail instead: `make test` installs a browser where it can.
    pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason=MISSING),
]

# Each cell as it comes, and with all that it folds opened.
PROBE = """
<script>
addEventListener("load", () => {
  const cells = [...document.querySelectorAll(".cell")];
  const look = () => cells.map(cell => ({
    text: cell.innerText,
    height: cell.getBoundingClientRect().height,
    wider: cell.scrollWidth - cell.clientWidth,
  }));
  const folded = look();
  cells.forEach(cell => cell.querySelectorAll("details").forEach(each => { each.open = true; }));
  const scripts = document.querySelectorAll(".cell script, .cell img, .cell b").length;
  document.body.dataset.probe = JSON.stringify({
    folded, opened: look(), scripts, beyond: document.documentElement.scrollWidth - innerWidth,
  });
});
</script>
"""


@pytest.fixture
def shown(tmp_path: Path) -> dict[str, str]:
    """Markup by what it shows, of a table whose column names are markup."""
    rows = pa.table({"id": range(40), "<b>bold</b>": ["x"] * 40})
    table = icebench.load_catalog(str(tmp_path / "wh")).create_table(
        "db.t", rows.schema, partition_spec=[("id", "bucket[4]")]
    )
    for _ in range(3):
        table.append(rows)
    table.delete("id = 3", "merge-on-read")
    scan = table.scan("id > 30")
    things = {
        "table": table,
        "schema": table.schema(),
        "scan": scan,
        "plan": scan.plan(),
        "explanation": scan.explain(),
        "profile": table.maintenance.profile(),
    }
    return {name: thing._repr_html_() for name, thing in things.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1000, 500])
def test_cells_say_what_they_hold_and_fit(shown: dict[str, str], tmp_path: Path, width: int) -> None:
    assert BROWSER is not None, MISSING
    cells = "".join(f'<div class="cell" style="overflow-x: auto">{markup}</div>' for markup in shown.values())
    page = tmp_path / "cells.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><body>{cells}{PROBE}</body>', encoding="utf-8")
    command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom"]
    dom = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, check=True, timeout=90).stdout
    (found,) = re.findall(r'data-probe="([^"]*)"', dom)
    seen = json.loads(found.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert seen["beyond"] <= 0
    assert seen["scripts"] == 0, "names of columns became markup"
    for name, folded, opened in zip(shown, seen["folded"], seen["opened"], strict=True):
        assert 0 < folded["height"] <= opened["height"], name
        assert folded["wider"] <= 0 or width < 1000, name  # a narrow cell is scrolled, not the page
        assert set(folded["text"].split()) <= set(opened["text"].split()), name
    texts = dict(zip(shown, (each["text"] for each in seen["opened"]), strict=True))
    assert all("db.t" in texts[name] for name in ("table", "scan", "profile"))
    assert "<b>bold</b>" in texts["schema"]
    assert "id > 30" in texts["scan"]
