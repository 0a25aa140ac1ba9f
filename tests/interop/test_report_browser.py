"""The report in a real browser: it fits the window, no label is cut off, and both themes are drawn."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from bench.report.build import build_report
from bench.report.html import render
from bench.report.palette import DARK, LIGHT
from tests.services.browser import MISSING, find_browser
from tests.unit.bench.report.sample_run import FAILED, crowded_run, sample_run

BROWSER = find_browser()

pytestmark = [
    pytest.mark.interop,
    # In CI they fail instead: `make test` installs a browser where it can.
    pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason=MISSING),
]

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

# What is looked at once the page is laid out; the result becomes an attribute that --dump-dom shows.
PROBE = """
<script>
addEventListener("load", () => {
  const outside = [];
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1
        && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
      if (!inside) outside.push(text.textContent);
    }
  }
  document.body.dataset.probe = JSON.stringify({
    width: document.documentElement.scrollWidth,
    window: innerWidth,
    drawings: document.querySelectorAll("svg").length,
    smallest: Math.min(...[...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect().height)),
    fetched: performance.getEntriesByType("resource").map(e => e.name).filter(name => !name.startsWith("data:")),
    outside,
  });
});
</script>
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    runs = {"usual": sample_run(failures=(FAILED,)), "crowded": crowded_run()}
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(render(build_report(run, results_file="r.jsonl")), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in runs}


def browse(page: Path, profile: Path, *flags: str) -> str:
    assert BROWSER is not None, MISSING
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=90).stdout


@pytest.mark.parametrize(("name", "drawings"), [("usual", 5), ("crowded", 2)])
@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_fits_its_window_and_no_label_is_cut_off(
    pages: dict[str, Path], tmp_path: Path, width: int, name: str, drawings: int
) -> None:
    probed = tmp_path / "probed.html"
    probed.write_text(pages[name].read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"), encoding="utf-8")
    dom = browse(probed, tmp_path / "profile", f"--window-size={width},900", "--dump-dom")
    found = re.search(r'data-probe="([^"]*)"', dom)
    assert found is not None
    seen = json.loads(found.group(1).replace("&quot;", '"'))
    assert seen["width"] <= seen["window"]
    assert seen["outside"] == []
    assert seen["drawings"] == drawings
    assert seen["smallest"] > 100
    assert seen["fetched"] == []


@pytest.mark.parametrize(("scheme", "theme"), [(1, LIGHT), (0, DARK)], ids=["light", "dark"])
def test_the_theme_follows_the_readers(
    pages: dict[str, Path], tmp_path: Path, scheme: int, theme: dict[str, str]
) -> None:
    target = tmp_path / "page.png"
    browse(
        pages["usual"], tmp_path / "profile", f"--blink-settings=preferredColorScheme={scheme}",
        f"--screenshot={target}", "--window-size=1000,900",
    )  # fmt: skip
    pixels = np.rint(matplotlib.image.imread(target)[:, :, :3] * 255).astype(int)
    corner = "#" + "".join(f"{part:02x}" for part in pixels[2, 2])
    assert corner == theme["--page"]
    # Text was drawn too, not only the ground.
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
