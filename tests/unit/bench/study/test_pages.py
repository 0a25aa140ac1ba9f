"""Pages of the study, of answers that are made by hand."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest
from rich.markdown import Markdown

from icebench.bench.execution.run_file import Run
from icebench.bench.report.charts import Line, LineChart, LinePanel, LinePoint
from icebench.bench.report.html import PADDING
from icebench.bench.report.model import Cell, Table, Tone, plain
from icebench.bench.study.page import Choice, Page
from icebench.bench.study.pages import FIRST, WIDTH, factor, files_of, index_page, machine_of, question_page
from icebench.bench.study.questions import Question
from tests.unit.bench.report.sample_run import sample_run

QUESTION = Question("sizes", "How large should files be?", ("Larger tables were not measured.",))
OTHER = Question("kinds", "Which kind is best?", ("Not of Spark.",))
CHART = LineChart(
    caption="Small files take 4x the time.",
    x_axis="megabytes",
    y_axis="seconds",
    series=("icebench",),
    panels=(
        LinePanel(
            title="a scan",
            lines=(Line(series="icebench", points=(LinePoint(x=1.0, y=4.0), LinePoint(x=10.0, y=1.0))),),
        ),
    ),
)
TABLES = (
    Table(
        title="By size",
        columns=("size", "time"),
        rows=(
            (plain("1 MB"), Cell(text="4 s", detail="[3, 5]")),
            (plain("10 MB"), Cell(text="1 s", tone=Tone.BEST)),
        ),
        note="Times are medians.",
    ),
    Table(title="By engine", columns=("engine", "files"), rows=((plain("icebench"), Cell(text="7")),)),
)


def chosen(better: str, ratio: float, *, low: float | None = None, high: float | None = None) -> Choice:
    return Choice(better=better, worse="the other", of="a scan", ratio=ratio, low=low, high=high)


def page(*choices: Choice, answer: str = "Large files are best.", limits: Sequence[str] = ()) -> Page:
    return Page(answer=answer, chart=CHART, tables=TABLES, choices=choices, limits=tuple(limits))


def tables_of(markdown: str) -> list[list[list[str]]]:
    """The cells of each table of a document, read as GitHub's Markdown."""
    found: list[list[list[str]]] = []
    inside = False
    for token in Markdown(markdown).parsed:
        match token.type:
            case "table_open" | "table_close":
                inside = token.nesting == 1
                found += [[]] if inside else []
            case "tr_open":
                found[-1].append([])
            case "inline" if inside:
                parts = token.children or []
                found[-1][-1].append("".join(part.content for part in parts if part.type != "image").strip())
    return found


def texts_of(markdown: str) -> list[str]:
    """Headings, paragraphs, items of lists and cells of a document, each on one line."""
    return [" ".join(token.content.split()) for token in Markdown(markdown).parsed if token.type == "inline"]


def markup_of(markdown: str) -> set[str]:
    """The kinds of tokens of a document: of its blocks, and in its lines."""
    blocks = Markdown(markdown).parsed
    return {token.type for token in blocks} | {part.type for token in blocks for part in token.children or []}


def test_a_page_has_all_that_answers_its_question() -> None:
    run = sample_run()
    text = question_page(QUESTION, page(limits=["Of one engine this is not so."]), run)
    said = texts_of(text)
    assert said[:2] == ["How large should files be?", "**Large files are best.**"]
    assert re.fullmatch(r"!\[[^]]+\]\(sizes.svg\)", said[2])
    assert said[3] == "Small files take 4x the time."
    assert "Times are medians." in said
    assert tables_of(text) == [
        [["size", "time"], ["1 MB", "4 s [3, 5]"], ["10 MB", "1 s"]],
        [["engine", "files"], ["icebench", "7"]],
    ]
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## By size",
        "## By engine",
        "## Where this does not hold",
        "## Again",
    ]
    assert said[-4:-1] == ["Of one engine this is not so.", "Larger tables were not measured.", "Again"]
    assert "\nicebench study sizes --again\n" in text
    assert run.run_id in said[-1]
    assert machine_of(run) in said[-1]
    assert "results/study/sizes.jsonl.xz" in said[-1]
    assert text.endswith(".\n")


@pytest.mark.parametrize("sign", ["and", ">", "-", "1."])
def test_long_texts_are_wrapped_and_remain_what_they_are(sign: str) -> None:
    """A sign between words begins no list or quotation, wherever a line ends."""
    text = " ".join(f"{'word' * (number % 7 + 1)} {sign}" for number in range(120)) + " end."
    long = replace(page(answer=text, limits=[text]), chart=replace(CHART, caption=text))
    written = question_page(QUESTION, long, sample_run())
    said = texts_of(written)
    assert [said[1], said[3]] == [f"**{text}**", text]
    assert said[-4] == text
    assert max(len(line) for line in written.splitlines() if not line.startswith("|")) <= 120
    (first,) = (place for place, line in enumerate(written.splitlines()) if line.startswith("- word"))
    assert written.splitlines()[first + 1].startswith("  word")  # as Markdown is usually written
    assert texts_of(index_page({QUESTION: long}))[-1] == f"[How large should files be?](sizes.md) {text}"


def test_rows_of_tables_are_not_wrapped() -> None:
    name = "a name " * 30 + "of a layout"
    table = replace(TABLES[0], rows=((plain(name), Cell(text="1 s")),), note=f"This is {name}.")
    text = question_page(QUESTION, replace(page(), tables=(table,)), sample_run())
    assert tables_of(text) == [[["size", "time"], [name, "1 s"]]]
    assert f"This is {name}." in texts_of(text)


def test_the_machine_is_said_as_far_as_it_is_known() -> None:
    assert machine_of(sample_run()) == (
        "2 cores of Example CPU @ 2.0GHz, 8 GiB of memory, Linux-6.1, Python 3.11.9; icebench 0.1.0, pyiceberg 0.12.0; "
        "revision aaaaaaaaaaaa with uncommitted changes"
    )
    unknown = machine_of(sample_run(environment={"id": "e", "engines": {"icebench": "1"}}))
    assert "None" not in unknown
    assert unknown.endswith("; icebench 1")


def test_choices_are_ranked_over_all_pages_by_what_they_move() -> None:
    own = page(chosen("a", 2.0, low=1.5, high=2.5), chosen("b", 9.0))
    other = page(chosen("c", 30.0, low=20.0, high=40.0), chosen("d", 4.0, low=1.2, high=6.0))
    (ranked, *rest) = tables_of(index_page({QUESTION: own, OTHER: other}))
    assert rest == []
    assert ranked == [
        ["choose", "instead of", "cost ratio", "cost of"],
        ["c", "the other", "30x [20, 40]", "a scan"],
        ["b", "the other", "9x", "a scan"],
        ["d", "the other", "4x [1.2, 6]", "a scan"],
        ["a", "the other", "2x [1.5, 2.5]", "a scan"],
    ]


def test_a_choice_leads_to_its_page() -> None:
    own = [chosen(f"own {number}", 2.0 + number) for number in range(FIRST)]
    other = [chosen(f"other {number}", 2.5 + number) for number in range(FIRST)]
    text = index_page({QUESTION: page(*own), OTHER: page(*other)})
    for choices, place in ((own, "sizes.md"), (other, "kinds.md")):
        for choice in choices:
            assert f"\n| [{choice.better}]({place}) | the other |" in text


@pytest.mark.parametrize(("low", "listed"), [(0.8, False), (1.0, False), (1.001, True), (None, True)])
def test_a_choice_whose_interval_reaches_one_is_left_out(low: float | None, listed: bool) -> None:
    text = index_page({QUESTION: page(chosen("sorting", 3.0, low=low, high=None if low is None else 9.0))})
    assert ("sorting" in text) == listed


@pytest.mark.parametrize("count", [1, FIRST, FIRST + 1, FIRST + 3])
def test_the_first_choices_stand_apart(count: int) -> None:
    text = index_page({QUESTION: page(*(chosen(f"choice {number}", 2.0 + number) for number in range(count)))})
    tables = [[row[0] for row in table[1:]] for table in tables_of(text)]
    names = [f"choice {number}" for number in reversed(range(count))]
    assert tables == [each for each in (names[:FIRST], names[FIRST:]) if each]
    assert "## The choices that move the cost most" in text
    assert ("\nThen:\n" in text) == (count > FIRST)


def test_the_index_has_each_question_with_its_answer() -> None:
    text = index_page({QUESTION: page(answer="Large ones."), OTHER: page(answer="None.")})
    assert texts_of(text)[-2:] == [
        "[How large should files be?](sizes.md) Large ones.",
        "[Which kind is best?](kinds.md) None.",
    ]


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (chosen("a", 1.237), "1.24x"),
        (chosen("a", 4.123, low=3.8, high=4.4), "4.12x [3.8, 4.4]"),
        (chosen("a", 1234.0, low=1100.0, high=1400.0), "1,234x [1,100, 1,400]"),
    ],
)
def test_a_factor_is_said_with_its_interval_and_without_exponents(choice: Choice, said: str) -> None:
    assert factor(choice) == said


NAMES = ("a|b", "<b>bold", "<script>")
"""Of layouts, filters and engines, which are in every text of a page."""


@pytest.mark.parametrize("name", NAMES)
def test_names_of_a_run_are_no_markup_on_a_page(name: str) -> None:
    table = replace(TABLES[0], title=name, columns=(name, "time"), rows=((plain(name), plain(name)),), note=name)
    chart = replace(CHART, caption=f"Of {name}.")
    odd = Page(answer=f"Take {name}.", chart=chart, tables=(table,), limits=(name,))
    text = question_page(QUESTION, odd, sample_run())
    assert tables_of(text) == [[[name, "time"], [name, name]]]
    assert markup_of(text) <= markup_of(question_page(QUESTION, page(limits=["l"]), sample_run())) | {"text_special"}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_a_run_are_no_markup_in_the_index(name: str) -> None:
    odd = replace(page(answer=f"Take {name}."), choices=(Choice(better=name, worse=name, of=name, ratio=2.0),))
    text = index_page({QUESTION: odd})
    assert tables_of(text)[0][1:] == [[name, name, "2x", name]]
    assert markup_of(text) <= markup_of(index_page({QUESTION: page(chosen("a", 2.0))})) | {"text_special"}


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two questions have answers."""
    for question in (QUESTION, OTHER):
        answers = ModuleType(f"icebench.bench.study.answers.{question.name}")
        answers.__dict__["answer"] = lambda run: page(chosen("a", 2.0), answer=f"Of {run.run_id}.")
        monkeypatch.setitem(sys.modules, answers.__name__, answers)


def runs() -> dict[Question, Run]:
    return {QUESTION: sample_run(run_id="first"), OTHER: sample_run(run_id="second")}


def test_each_question_has_a_page_and_a_drawing_and_there_is_an_index(answered: None) -> None:
    files = dict(files_of(runs()))
    assert set(files) == {"sizes.md", "sizes.svg", "kinds.md", "kinds.svg", "index.md"}
    assert "**Of first.**" in files["sizes.md"]
    assert "**Of second.**" in files["kinds.md"]
    assert files["kinds.md"].count("second") == 2  # in the answer, and where it is from
    assert "(sizes.md) Of first." in files["index.md"]
    assert files == dict(files_of(runs()))


def test_drawings_stand_by_themselves_and_say_what_they_show(answered: None) -> None:
    drawn = dict(files_of(runs()))["sizes.svg"]
    root = ET.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.attrib["width"]) == pytest.approx(WIDTH * 72 + 2 * PADDING)
    assert f"<title>{CHART.caption}</title>" in unescape(drawn)


def test_without_kept_runs_the_index_is_empty_and_not_broken() -> None:
    ((name, text),) = files_of({})
    assert name == "index.md"
    assert text.startswith("# The study\n")
