"""The report in a real browser: it fits the window, no label is cut off, both themes are drawn, and it is read and
operated by keys."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

from icebench.bench.report.build import build_report
from icebench.bench.report.charts import ScatterChart, ScatterPoint
from icebench.bench.report.html import render
from icebench.bench.report.model import Section
from icebench.bench.report.palette import DARK, LIGHT
from tests.services.browser import MISSING, find_browser
from tests.services.devtools import Page, browser_page
from tests.unit.bench.report.sample_run import DRIFT, FAILED, crowded_run, sample_run
from tests.unit.bench.report.test_layout_costs import BUILDS, QUERIES, run_of

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

# What is looked at once the page is laid out.
PROBE = """(() => {
  const outside = [];
  const drawn = [...document.querySelectorAll("svg")].filter(svg => svg.checkVisibility());
  for (const svg of drawn) {
    const frame = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll("text")) {
      const box = text.getBoundingClientRect();
      const inside = box.left >= frame.left - 1 && box.right <= frame.right + 1
        && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
      if (!inside) outside.push(text.textContent);
    }
  }
  return {
    width: document.documentElement.scrollWidth,
    window: innerWidth,
    drawings: drawn.length,
    smallest: Math.min(...drawn.map(svg => svg.getBoundingClientRect().height)),
    fetched: performance.getEntriesByType("resource").map(e => e.name).filter(name => !name.startsWith("data:")),
    outside,
  };
})()"""


LONG = "monthly-sorted (target-file-size=134217728, level=9)"
COSTS = ScatterChart(
    caption="Building against asking.",
    x_axis="seconds to build",
    y_axis="milliseconds of a query",
    points=tuple(
        ScatterPoint(
            label=f"monthly-sorted (files={n}, level=9)", x=n + 1.0, y=90.0 - n, joined=n < 3, reach=(n, n + 2.0)
        )
        for n in range(8)
    ),
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    runs = {"usual": sample_run(failures=(FAILED,)), "crowded": crowded_run()}
    for name, run in runs.items():
        (folder / f"{name}.html").write_text(render(build_report(run, results_file="r.jsonl")), encoding="utf-8")
    builds = run_of({**QUERIES, LONG: 0.3}, {**BUILDS, LONG: 90.0})
    (folder / "builds.html").write_text(render(build_report(builds, results_file="r.jsonl")), encoding="utf-8")
    usual = build_report(runs["usual"], results_file="r.jsonl")
    costs = Section(key="costs", title="Costs", explanation="", charts=(COSTS,), tables=usual.sections[0].all_tables)
    (folder / "costs.html").write_text(render(replace(usual, sections=(costs,))), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (*runs, "costs", "builds")}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert BROWSER is not None, MISSING
    with browser_page(BROWSER, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize(("name", "drawings"), [("usual", 5), ("crowded", 2), ("costs", 1)])
@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_fits_its_window_and_no_label_is_cut_off(
    pages: dict[str, Path], page: Page, width: int, name: str, drawings: int
) -> None:
    page.open(pages[name], width=width)
    seen = page.ask(PROBE)
    assert seen["window"] == width
    assert seen["width"] <= width
    assert seen["outside"] == []
    assert seen["drawings"] == drawings
    assert seen["smallest"] > 100
    assert seen["fetched"] == []


@pytest.mark.parametrize(("dark", "theme"), [(False, LIGHT), (True, DARK)], ids=["light", "dark"])
def test_the_theme_follows_the_readers(
    pages: dict[str, Path], page: Page, tmp_path: Path, dark: bool, theme: dict[str, str]
) -> None:
    target = tmp_path / "page.png"
    page.open(pages["usual"], width=1000, dark=dark)
    page.picture(target)
    pixels = np.rint(matplotlib.image.imread(target)[:, :, :3] * 255).astype(int)
    corner = "#" + "".join(f"{part:02x}" for part in pixels[2, 2])
    assert corner == theme["--page"]
    # Text was drawn too, not only the ground.
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50


def tab_stops(page: Page) -> list[dict[str, Any]]:
    """What is focused, one Tab after the other, from the page's begin until the focus leaves it or begins again."""
    page.ask(f"void (window.stops = [], addEventListener('keyup', () => stops.push({FOCUSED})))")
    for _ in range(20):
        page.press("Tab", times=50)
        found: list[Any] = page.ask("stops")
        for place, stop in enumerate(found):
            if stop is None or (place and stop == found[0]):
                return found[:place]
    raise AssertionError("the focus never leaves the page")


def tab_to(page: Page, condition: str) -> None:
    """Get by Tab to the first element that fulfils a condition, which has to be a tab stop."""
    page.ask(f"[...document.querySelectorAll('*')].find(own => {condition}).focus()")
    page.press("Tab", shift=True)
    page.press("Tab")
    assert page.ask(f"(own => {condition})(document.activeElement)"), f"no tab stop: {condition}"


# Each pair of two of them.
@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("usual", 1200, False), ("usual", 400, True), ("crowded", 1200, True), ("crowded", 400, False)],
)
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
        "[...document.querySelectorAll('a, summary, pre, .scroll, .drawing, .switch > input:checked, "
        ".tools > input, button')]"
        ".filter(each => each.checkVisibility() || each.matches('.switch > input')).length"
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
    assert page.ask("document.activeElement.matches('details[open] > .tools > *')")
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


@pytest.mark.parametrize(("width", "is_narrow"), [(400, True), (1200, False)])
def test_the_chart_of_costs_is_whole_and_readable_in_any_window(
    pages: dict[str, Path], page: Page, width: int, is_narrow: bool
) -> None:
    page.open(pages["costs"], width=width)
    box = "document.querySelector('.drawing:has(.narrow)')"
    drawn = f"[...{box}.querySelectorAll('svg')].filter(svg => svg.checkVisibility())"
    assert page.ask(f"{drawn}.map(svg => Boolean(svg.closest('.narrow')))") == [is_narrow]
    assert page.ask(f"{box}.scrollWidth <= {box}.clientWidth")
    letters = f"[...{drawn}[0].querySelectorAll('text')].map(text => text.getBoundingClientRect().height)"
    assert min(page.ask(letters)) >= 8


def test_the_table_of_builds_is_whole_in_a_window_of_1280(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["builds"], width=1280)
    box = "document.querySelector('.scroll[aria-label^=\"What building\"]')"
    assert LONG in page.ask(f"{box}.innerText")
    assert page.ask(f"[{box}.scrollWidth <= {box}.clientWidth, {box}.querySelectorAll('th').length]") == [True, 17]


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


# The first table with figures in some column, and more rows than a filter is for.
TABLE = """const table = [...document.querySelectorAll(".scroll > table")].find(
  each => each.checkVisibility() && each.tBodies[0].rows.length >= 4 && each.querySelector("td.figure"));
const tools = table.parentElement.previousElementSibling;"""
DOWNLOADED = """(async () => {
  TABLE
  let blob, name;
  URL.createObjectURL = given => { blob = given; return "#"; };
  HTMLAnchorElement.prototype.click = function () { name = this.download; };
  [...tools.querySelectorAll("button")].find(each => each.textContent === "FORM").click();
  return [name, blob.type, await blob.text()];
})()"""


def of_table(page: Page, expression: str) -> Any:
    return page.ask(f"(() => {{ {TABLE} return {expression}; }})()")


def downloaded(page: Page, form: str) -> list[str]:
    found: list[str] = page.ask(DOWNLOADED.replace("TABLE", TABLE).replace("FORM", form))
    return found


def column(page: Page, place: int) -> list[str]:
    cell = f"[...table.tBodies[0].rows].map(row => row.cells[{place}])"
    kept = "node.nodeType === 3 || node.matches('button')"
    first = f"cell => [...cell.childNodes].filter(node => {kept}).map(node => node.textContent).join('').trim()"
    found: list[str] = of_table(page, f"{cell}.map({first})")
    return found


FIGURES = (
    ["-3 ms", "0 s", "900 µs", "12.5 ms", "1.5 s", "75 minutes", "2 days"],
    ["7 B", "3.5 KB", "1,020 KB", "1 MB", "1.2 GB"],
    ["1.62%", "9.48%", "100%"],
    ["0.0112 $", "1.1 $"],
    ["12.5 [9, 16]", "13 [1, 99]", "1,234 [2, 3]", "2 M rows/s"],
)


def test_figures_are_sorted_by_keys_in_their_units_and_back(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    place = of_table(page, "table.tBodies[0].rows[0].querySelector('td.figure').cellIndex")
    cells = f"[...table.tBodies[0].rows].map(row => row.cells[{place}])"
    state = f"table.tHead.rows[0].cells[{place}].getAttribute('aria-sort')"
    of_table(page, f"table.tHead.rows[0].cells[{place}].querySelector('button').focus()")
    for ascending in FIGURES:
        given = json.dumps(ascending[::-1])
        of_table(page, f"{cells}.map((cell, i) => cell.replaceChildren({given}[i % {len(ascending)}])) && null")
        before = column(page, place)
        wanted = sorted(before, key=ascending.index)
        for key, order, texts in (
            ("Enter", "ascending", wanted),
            (" ", "descending", wanted[::-1]),
            ("Enter", None, before),
        ):
            page.press(key)
            assert (of_table(page, state), column(page, place)) == (order, texts)
        assert len(set(before)) > 1


def test_what_is_no_number_is_last_in_any_order(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    of_table(page, "table.tBodies[0].rows[0].querySelector('td.figure').replaceChildren('-')")
    place = of_table(page, "table.tBodies[0].rows[0].querySelector('td.figure').cellIndex")
    for _ in range(2):
        of_table(page, f"table.tHead.rows[0].cells[{place}].querySelector('button').click()")
        assert column(page, place).index("-") == len(column(page, place)) - 1


def test_layouts_are_sorted_by_when_they_pay_and_that_is_seen(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["builds"], width=1100)
    found = """(([head]) => {
      const table = head.closest("table"), box = head.getBoundingClientRect();
      %s
      return { seen: box.right < table.parentElement.getBoundingClientRect().right, texts: [...table.tBodies[0].rows]
        .map(row => row.cells[head.cellIndex].firstChild.textContent.trim()) };
    })([...document.querySelectorAll("thead th")].filter(each => each.textContent === "Pays"))"""
    first = page.ask(found % "")
    assert first["seen"]
    number = r"after [\d,]+ quer(y|ies)"
    up, down = (page.ask(found % "head.querySelector('button').click();")["texts"] for _ in range(2))
    for texts, wanted in ((up, f"at once( {number})+ never"), (down, f"never( {number})+ at once")):
        assert sorted(texts) == sorted(first["texts"])
        assert re.fullmatch(rf"{wanted} (?=.*baseline)(baseline|undecided| )+", " ".join(texts))
    after = [int(re.sub(r"\D", "", text)) for text in up if text.startswith("after")]
    assert after == sorted(after)


def test_tables_are_filtered(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    names = column(page, 0)
    word = names[-1]
    typed = f"i.value = {json.dumps(word.upper())}; i.dispatchEvent(new Event('input'));"
    of_table(page, f"(i => {{ {typed} }})(tools.querySelector('input'))")
    shown = of_table(page, "[...table.tBodies[0].rows].filter(row => row.checkVisibility()).map(row => row.innerText)")
    assert 0 < len(shown) < len(names)
    assert all(word in text for text in shown)
    assert of_table(page, "tools.querySelector('output').textContent") == f"{len(shown)} of {len(names)} rows"
    rows = json.loads(downloaded(page, "JSON")[2])
    assert len(rows) == len(shown)


def test_tables_are_downloaded_as_they_are_shown(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    title = of_table(page, "table.parentElement.getAttribute('aria-label')")
    heads = of_table(page, "[...table.tHead.rows[0].cells].map(each => each.innerText.replace(/ .$/, ''))")
    odd = json.dumps('a "quoted", cell')
    of_table(page, f"table.tBodies[0].rows[0].cells[0].replaceChildren({odd})")
    name, kind, text = downloaded(page, "JSON")
    rows = json.loads(text)
    assert (name, kind) == (re.sub("[^a-z0-9]+", "-", title.lower()).strip("-") + ".json", "application/json")
    for place, head in enumerate(of_table(page, "[...table.tHead.rows[0].cells].map(each => each.textContent)")):
        assert [row[head or "name"] for row in rows] == column(page, place)
    assert len(heads) > 1
    name, kind, text = downloaded(page, "CSV")
    assert (name.rpartition(".")[2], kind) == ("csv", "text/csv")
    heading, *lines = csv.reader(io.StringIO(text))
    assert [dict(zip(heading, line, strict=True)) for line in lines] == [
        {**dict.fromkeys(heading, ""), **row} for row in rows
    ]
    assert heading == list(dict.fromkeys(key for row in rows for key in row))


def test_without_its_script_the_page_has_all_tables(pages: dict[str, Path], page: Page, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r"<script>.*?</script>", "", pages["usual"].read_text(), flags=re.DOTALL))
    page.open(bare)
    counted = "[...document.querySelectorAll('.scroll > table')].map(each => each.rows.length)"
    rows = page.ask(counted)
    assert page.ask("document.querySelectorAll('button').length") == 0
    page.open(pages["usual"])
    assert page.ask(counted) == rows
    assert page.ask("document.querySelectorAll('.tools').length") == len(rows)


FIGURE = "document.querySelectorAll('.open')[1]"
SAMPLES = "document.querySelector('.samples')"


@pytest.mark.parametrize("key", ["Enter", " "])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_figure_opens_its_samples_by_keys_and_closes_them(
    pages: dict[str, Path], page: Page, key: str, dark: bool
) -> None:
    page.open(pages["usual"], dark=dark)
    tab_to(page, f"own === {FIGURE}")
    figure = page.ask("document.activeElement.textContent")
    cells = page.ask("[...document.activeElement.closest('tr').cells].slice(0, 2).map(each => each.textContent)")
    page.press(key)
    page.wait_for(f"{SAMPLES}?.contains(document.activeElement)")
    name, text = (page.ask(f"{SAMPLES}.{of}") for of in ("getAttribute('aria-label')", "innerText"))
    assert all(cell in name for cell in cells)
    assert f"Median {figure}, " in text
    assert "7 samples in 1 process, by round:" in text
    assert page.ask(f"{SAMPLES}.querySelectorAll('circle').length") == len(DRIFT)
    # The stalled round is the highest point, and all are inside the picture.
    heights = page.ask(f"[...{SAMPLES}.querySelectorAll('circle')].map(each => +each.getAttribute('cy'))")
    assert heights.index(min(heights)) == DRIFT.index(max(DRIFT))
    assert 0 < min(heights) < max(heights) < 110
    outside = f"(b => b.left < 0 || b.right > innerWidth || b.height < 50)({SAMPLES}.getBoundingClientRect())"
    assert page.ask(outside) is False
    assert page.ask("getComputedStyle(document.querySelector('.samples text')).fill") != page.ask(
        f"getComputedStyle({SAMPLES}).backgroundColor"
    )
    page.press(key)
    page.wait_for(f"!{SAMPLES} && document.activeElement === {FIGURE}")
    assert page.ask(f"{FIGURE}.getAttribute('aria-expanded')") == "false"


def test_one_case_is_open_at_a_time_and_escape_closes_it(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    counters = []
    for place in (0, 1, 2):
        page.ask(f"document.querySelectorAll('.open')[{place}].click()")
        counters.append(page.ask(f"[...{SAMPLES}.querySelectorAll('dt')].map(each => each.textContent)"))
        assert page.ask("document.querySelectorAll('.samples').length") == 1
    assert "entries decoded" in counters[0]
    assert counters[2] == ["Process 0, ms"]
    page.press("Escape")
    page.wait_for(f"!{SAMPLES}")


def view_of(page: Page) -> Any:
    """What a reader chose, as the page shows it."""
    return page.ask(
        """({
          sorted: [...document.querySelectorAll("[aria-sort]")].map(each => each.ariaSort + each.textContent),
          filtered: [...document.querySelectorAll(".tools > input")].map(each => each.value).filter(Boolean),
          rows: [...document.querySelectorAll("tbody tr")].filter(row => row.checkVisibility()).map(r => r.innerText),
          open: document.querySelector(".samples")?.ariaLabel ?? null,
        })"""
    )


@pytest.fixture
def new_page(tmp_path: Path) -> Iterator[Page]:
    """A page without a past: of a full history Chromium first drops what was added without a reader's gesture."""
    assert BROWSER is not None, MISSING
    with browser_page(BROWSER, tmp_path / "profile") as page:
        yield page


def test_the_address_keeps_order_filter_and_open_case_and_the_back_button_undoes_them(
    pages: dict[str, Path], new_page: Page
) -> None:
    page = new_page
    page.open(pages["usual"])
    views = [view_of(page)]
    typed = "i.value = WORDS; i.dispatchEvent(new Event('input'));"
    twice = [typed.replace("WORDS", repr(words)) for words in ("m", "one_month sorted")]
    order = "table.tHead.rows[0].cells[2].querySelector('button').click()"
    for step in (
        order,
        order,
        f"(i => {{ {' '.join(twice)} }})(tools.querySelector('input'))",
        "[...table.querySelectorAll('.open')].find(each => each.checkVisibility()).click()",
    ):
        of_table(page, f"{step} && null")
        views.append(view_of(page))
    assert len({json.dumps(view) for view in views}) == len(views)
    address = page.ask("location.href")
    for view in views[-2::-1]:
        page.ask("void setTimeout(() => history.back())")
        page.wait_for(f"document.querySelector('.samples')?.ariaLabel !== {json.dumps(views[-1]['open'])}")
        wanted = json.dumps(view["sorted"] + view["filtered"])
        seen = (
            "JSON.stringify([...[...document.querySelectorAll('[aria-sort]')].map(each => each.ariaSort + "
            "each.textContent), ...[...document.querySelectorAll('.tools > input')].map(i => i.value).filter(Boolean)])"
        )
        page.wait_for(f"{seen} === JSON.stringify({wanted})")
        assert view_of(page) == view
    assert page.ask("location.hash") == ""
    page.open(pages["usual"], fragment=address.partition("#")[2])
    assert view_of(page) == views[-1]


def test_a_fragment_that_names_nothing_of_the_page_changes_nothing(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["usual"])
    view = view_of(page)
    page.open(pages["usual"], fragment="case=none&sort+Planning+time%2C+cold=descending+none&more=1")
    assert view_of(page) == view
