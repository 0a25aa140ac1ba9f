"""The pages of the study as files: Markdown with a drawing each, and an index that ranks the choices."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template

from icebench.bench.execution.run_file import Run
from icebench.bench.markdown import escaped, escaped_block
from icebench.bench.report.exports import markdown_table
from icebench.bench.report.html import picture
from icebench.bench.report.model import Table
from icebench.bench.report.quantities import digits, times
from icebench.bench.study.page import Choice, Page
from icebench.bench.study.questions import Question

WIDTH = 5.4
"""Inches of a drawing: its letters can be read on a telephone."""
LINE = 120
"""Characters."""
_MARK = re.compile(r" (?=>|(?:[-+*#=_]+|\d+[.)])(?: |$))")
"""The space before a word that a line must not begin with."""
FIRST = 5
"""How many choices the index names at its beginning."""


def files_of(runs: Mapping[Question, Run]) -> Iterator[tuple[str, str]]:
    """The name and the text of each file: page and drawing of each question, and the index.

    Args:
        runs: Of each question the run that answers it.

    Raises:
        LookupError: A run lacks what its page is made of.
    """
    pages = with_model_error({question: question.page(run) for question, run in runs.items()})
    for question, page in pages.items():
        yield f"{question.name}.svg", picture(page.chart, WIDTH)
        yield f"{question.name}.md", question_page(question, page, runs[question])
    yield "index.md", index_page(pages)


def with_model_error(pages: Mapping[Question, Page]) -> dict[Question, Page]:
    """The pages, with how far the model of an object store was off below each table of its figures."""
    error = next((f" {page.model_error}" for page in pages.values() if page.model_error), "")

    def noted(table: Table, page: Page) -> Table:
        return replace(table, note=f"{table.note}{error}") if table.title in page.modelled else table

    return {
        question: replace(page, tables=tuple(noted(table, page) for table in page.tables))
        for question, page in pages.items()
    }


def question_page(question: Question, page: Page, run: Run) -> str:
    """The page of a question as Markdown."""
    return _template("question.md.j2").render(
        question=question,
        page=page,
        markdown=_markdown,
        machine=machine_of(run),
        run=run,
    )


def index_page(pages: Mapping[Question, Page]) -> str:
    """The answers, and the choices of all pages in the order of what they move."""
    ranked = sorted(
        (
            (choice, question)
            for question, page in pages.items()
            for choice in page.choices
            if (choice.ratio if choice.low is None else choice.low) > 1
        ),
        key=lambda found: -found[0].ratio,
    )
    return _template("index.md.j2").render(pages=pages, first=ranked[:FIRST], more=ranked[FIRST:], factor=factor)


def factor(choice: Choice) -> str:
    """How many times a choice moves a cost, with its interval: ``4.1x [3.8, 4.4]``."""
    if choice.low is None or choice.high is None:
        return times(choice.ratio)
    return f"{times(choice.ratio)} [{digits(choice.low)}, {digits(choice.high)}]"


def machine_of(run: Run) -> str:
    """The machine, the software and the revision of a run, in a sentence."""
    hardware, software = (dict(run.environment.get(key) or {}) for key in ("hardware", "software"))
    engines = ", ".join(f"{name} {version}" for name, version in dict(run.environment.get("engines") or {}).items())
    memory = hardware.get("memory_bytes")
    parts = [
        f"{hardware.get('cores', 'unknown')} cores of {hardware.get('cpu', 'an unknown processor')}",
        *([] if memory is None else [f"{float(memory) / (1 << 30):.0f} GiB of memory"]),
        f"{software.get('os', 'unknown system')}",
        f"Python {software.get('python', 'unknown')}",
    ]
    git = dict(run.environment.get("git") or {})
    changed = " with uncommitted changes" if git.get("dirty") else ""
    revision = f"; revision {str(git['revision'])[:12]}{changed}" if git.get("revision") else ""
    return f"{', '.join(parts)}; {engines}{revision}"


def _template(name: str) -> Template:
    environment = Environment(
        loader=FunctionLoader(_resource),
        autoescape=False,  # noqa: S701 - Markdown, of figures and names of a run
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    environment.filters |= {"wrapped": _wrapped, "escaped": escaped, "escaped_block": escaped_block}
    return environment.get_template(name)


def _markdown(table: Table) -> str:
    lines = markdown_table(table)
    return "\n".join(line if line.startswith("|") else _wrapped(line) for line in lines)


def _wrapped(markdown: str, indent: str = "") -> str:
    """Markdown in lines of which none but the first begins with what would be taken for a mark there."""
    held = _MARK.sub("\0", markdown)
    lines = textwrap.fill(held, LINE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace("\0", " ")


def _resource(name: str) -> str:
    return files("icebench.bench.study").joinpath(name).read_text(encoding="utf-8")
