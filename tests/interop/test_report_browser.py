"""The report in a real browser: it fits the window, no label is cut off, both themes are drawn, and it is read and
operated by keys."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from icebench.bench.report.build import build_report
from icebench.bench.report.html import render
from icebench.bench.report.palette import DARK, LIGHT
from tests.services.browser import MISSING, find_browser
from tests.services.devtools import FLAGS, Page, browser_page
from tests.unit.bench.report.sample_run import FAILED, crowded_run, sample_run

BROWSER = find_browser()

pytestmark = [
    pytest.mark.interop,
    # In CI they fail instead: `make test` installs a browser where it can.
    pytest.mark.skipif(BROWSER is None and "CI" not in os.environ, reason=MISSING),
]

# Where the focus is: the element's place in the document, and what of it is drawn (of a radio button, its label).
FOCUSED = """(() => {
  const own = document.activeElement;
  if (!own || own === document.body) return null;
  const drawn = own.matches(".switch > input") ? own.nextElementSibling : own;
  const style = getComputedStyle(drawn), box = drawn.getBoundingClientRect();
  return {
    place: [...document.querySelectorAll("*")].indexOf(own),
    tag: own.tagName,
    id: own.id,
    kind: own.className,
    outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.height > 0,
  };
})()"""

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
        pages["usual"],
        tmp_path / "profile",
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--screenshot={target}",
        "--window-size=1000,900",
    )
    pixels = np.rint(matplotlib.image.imread(target)[:, :, :3] * 255).astype(int)
    corner = "#" + "".join(f"{part:02x}" for part in pixels[2, 2])
    assert corner == theme["--page"]
    # Text was drawn too, not only the ground.
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert BROWSER is not None, MISSING
    with browser_page(BROWSER, tmp_path_factory.mktemp("profile")) as page:
        yield page


def tab_stops(page: Page) -> list[dict[str, Any]]:
    """What is focused, one Tab after the other, from the page's begin until the focus leaves it or begins again."""
    found: list[dict[str, Any]] = []
    for _ in range(200):
        page.press("Tab")
        focused = page.ask(FOCUSED)
        if focused is None or found[:1] == [focused]:
            return found
        found.append(focused)
    raise AssertionError("the focus never leaves the page")


def tab_to(page: Page, condition: str) -> None:
    """Press Tab until the focused element fulfils a condition."""
    for _ in range(200):
        page.press("Tab")
        if page.ask(f"(own => {condition})(document.activeElement)"):
            return
    raise AssertionError(f"no tab stop: {condition}")


@pytest.mark.parametrize("name", ["usual", "crowded"])
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_focus_goes_through_the_page_in_its_order_and_is_seen(
    pages: dict[str, Path], page: Page, name: str, width: int, dark: bool
) -> None:
    page.open(pages[name], width=width, dark=dark)
    stops = tab_stops(page)
    places = [stop["place"] for stop in stops]
    assert places == sorted(set(places))
    assert stops[0]["kind"] == "skip"
    assert [stop for stop in stops if not (stop["outlined"] and stop["seen"])] == []
    # Everything that scrolls, folds or is followed, and of radio buttons the one that is chosen.
    wanted = page.ask(
        "[...document.querySelectorAll('a, summary, pre, .scroll, .drawing, .switch > input:checked')]"
        ".filter(each => each.checkVisibility() || each.matches('input')).length"
    )
    assert len(stops) == wanted
    assert page.ask("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0


def test_the_focus_goes_back_as_it_came(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    first = page.ask(FOCUSED)
    places = []
    for shift in (False, True):
        for _ in range(12):
            page.press("Tab", shift=shift)
            places.append(page.ask(FOCUSED))
    assert first is None
    assert [p["place"] for p in places[:11]] == [p["place"] for p in places[12:23]][::-1]


def test_the_first_link_skips_to_the_findings(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    page.press("Tab")
    page.press("Enter")
    page.wait_for("location.hash === '#findings'")
    page.press("Tab")
    after = "document.querySelector('#findings').compareDocumentPosition(document.activeElement)"
    assert page.ask(f"Boolean({after} & Node.DOCUMENT_POSITION_FOLLOWING)")


def test_arrows_choose_the_quantity_of_the_heat_map(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    shown = "[...document.querySelectorAll('.turn')].map(each => each.checkVisibility())"
    tab_to(page, "own.matches('.switch > input')")
    assert page.ask(shown) == [True, False]
    page.press("ArrowRight")
    assert page.ask(shown) == [False, True]
    focused = page.ask(FOCUSED)
    assert (focused["id"], focused["outlined"], focused["seen"]) == ("layouts-2", True, True)
    # What is shown comes next, and not the first of the turns.
    page.press("Tab")
    assert page.ask("document.activeElement.closest('.turn') === document.querySelectorAll('.turn')[1]")
    page.press("Tab", shift=True)
    page.press("ArrowLeft")
    assert page.ask(shown) == [True, False]


@pytest.mark.parametrize("key", ["Enter", " "])
def test_folded_tables_are_opened_by_keys_and_reached(pages: dict[str, Path], page: Page, key: str) -> None:
    page.open(pages["usual"])
    tab_to(page, "own.matches('summary')")
    page.press(key)
    page.wait_for("document.activeElement.parentElement.open")
    page.press("Tab")
    assert page.ask("document.activeElement.matches('details[open] > .scroll')")
    page.press("Tab", shift=True)
    page.press(key)
    page.wait_for("!document.querySelector('details[open]')")


@pytest.mark.parametrize("kind", ["scroll", "drawing"])
def test_what_is_wider_than_the_window_is_scrolled_by_arrows(pages: dict[str, Path], page: Page, kind: str) -> None:
    page.open(pages["usual"], width=400)
    tab_to(page, f"own.matches('.{kind}') && own.scrollWidth > own.clientWidth")
    page.press("ArrowRight")
    page.wait_for("document.activeElement.scrollLeft > 0")
    page.press("ArrowLeft")
    page.wait_for("document.activeElement.scrollLeft === 0")


@pytest.mark.parametrize(("name", "drawings"), [("usual", 5), ("crowded", 2)])
def test_screen_readers_get_what_is_drawn_and_where_its_figures_are(
    pages: dict[str, Path], page: Page, name: str, drawings: int
) -> None:
    page.open(pages[name])
    nodes = page.accessibility()
    names: dict[str, list[str]] = {}
    for node in nodes:
        names.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert len(names["image"]) == drawings
    assert all(text.endswith("The tables below give the same figures.") for text in names["image"])
    tables = "each.parentElement.querySelector('figure ~ .scroll, figure ~ details .scroll')"
    assert page.ask(f"[...document.querySelectorAll('figure')].every(each => {tables})")
    assert "SvgRoot" not in names
    assert names["radio"] == page.ask("[...document.querySelectorAll('.switch > label')].map(each => each.textContent)")
    assert any(text.endswith(": quantity") for text in names["group"])
    for role in ("region", "table", "link", "radio"):
        assert all(names[role])
        assert len(set(names[role])) == len(names[role]), role
