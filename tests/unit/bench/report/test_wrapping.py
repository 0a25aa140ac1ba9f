from __future__ import annotations

import io
import shlex

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from icebench.bench.report.console import compared
from icebench.bench.report.model import Cell, Comparison, Table, plain
from icebench.bench.report.wrapping import Command, Hanging, command_lines, wrapped

COMMAND = "icebench maintain rewrite-data-files 'my wh' db.events --delete-file-threshold 1 --remove-dangling-deletes"
SQL = "CALL system.rewrite_data_files(table => 'db.t', sort_order => 'a ASC NULLS FIRST, b ASC NULLS FIRST')"


def shown(part: RenderableType, width: int, *, is_terminal: bool = True) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    console.print(part, crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", range(24, 110))
def test_a_shell_reads_a_broken_command_as_it_was(width: int) -> None:
    lines = command_lines(COMMAND, width)
    assert all(len(line) <= width or len(shlex.split(line.rstrip(" \\"))) <= 2 for line in lines)
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(COMMAND)  # as a shell does first
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_an_option_stays_with_its_value() -> None:
    assert any("--delete-file-threshold 1" in line for line in command_lines(COMMAND, 40))


@pytest.mark.parametrize("width", [30, 60, 80])
def test_texts_in_sql_are_not_broken(width: int) -> None:
    lines = command_lines(SQL, width)
    assert len(lines) > 1
    assert "'a ASC NULLS FIRST, b ASC NULLS FIRST'" in "".join(lines)
    assert " ".join(line.strip() for line in lines) == SQL


def test_python_is_not_broken() -> None:
    text = f"table.update_spec(lambda spec: spec.add_field({'x' * 80!r}, 'identity'))"
    assert command_lines(text, 40) == [text]


@pytest.mark.parametrize("part", [Command(COMMAND, 3), Hanging("1. ", COMMAND)])
def test_what_is_no_terminal_gets_whole_lines(part: RenderableType) -> None:
    (line,) = shown(part, 40, is_terminal=False)
    assert line.strip().endswith(COMMAND)
    assert len(shown(part, 40)) > 1


def test_further_lines_hang_below_the_text_and_no_word_is_lost() -> None:
    text = f"one two {'long/' * 12} files of 7.92 KB and rows_decoded 2,400"
    lines = shown(Hanging(Text("12. "), text), 36)
    assert lines[0].startswith("12. one")
    assert all(line.startswith("    ") for line in lines[1:])
    assert " ".join(" ".join(lines).split()).removeprefix("12. ") == text


@pytest.mark.parametrize("width", range(20, 60))
def test_a_figure_stays_with_its_unit_and_its_name(width: int) -> None:
    lines = wrapped("reads 7.92 KB and 31 MB in 390 ms with rows_decoded 2,400 and 30.8 % less", width).splitlines()
    for pair in ("7.92 KB", "31 MB", "390 ms", "rows_decoded 2,400", "30.8 %"):
        assert sum(pair in line for line in lines) == 1


@pytest.mark.parametrize("width", range(50, 130, 3))
def test_a_table_that_is_too_wide_comes_in_parts_with_whole_figures(width: int) -> None:
    engines = [f"engine-number-{n}" for n in range(6)]
    rows = tuple(
        (
            plain(f"filter {row}"),
            plain("unpartitioned"),
            *(Cell(text=f"{row}{n}.5 ms", detail=f"[{n}, 1,092]") for n in range(6)),
        )
        for row in range(2)
    )
    table = Table(title="A title that is wider than its table", columns=("Filter", "Layout", *engines), rows=rows)
    comparison = Comparison(title="t", findings=(), tables=(table,), notes=(), rows=(), summaries=1)
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    for part in compared(comparison, console, lines=None):
        console.print(part, crop=False)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    text = "\n".join(lines)
    assert all(text.count(engine) == 1 for engine in engines)
    assert all(text.count(f"[{n}, 1,092]") == 2 for n in range(6))
    parts = text.count("Filter")
    assert parts == text.count("filter 0") == text.count("filter 1")
    assert (parts > 1) == (width < 129)
