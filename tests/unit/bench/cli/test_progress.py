from __future__ import annotations

import re
from io import StringIO

from rich.console import Console

from icebench.bench.cli.progress import RunProgress


def test_without_a_terminal_there_is_a_plain_line_for_each_phase() -> None:
    out = StringIO()
    with RunProgress(Console(file=out, width=20)) as progress:
        progress("datasets", "monthly: [the] table that has a long name", 0, 2)
        progress("planning", "monthly: all", 1, 2)
    assert out.getvalue() == (
        "datasets: monthly: [the] table that has a long name (0/2)\nplanning: monthly: all (1/2)\n"
    )


def test_and_one_every_ten_seconds() -> None:
    out = StringIO()
    now = [0.0]
    with RunProgress(Console(file=out), lambda: now[0]) as progress:
        for step in range(80):
            now[0] = step * 0.5
            progress(("planning", "pruning")[step % 2] if step < 10 else "tpcds", f"step {step}", step, 80)
    steps = [int(line.split()[2]) for line in out.getvalue().splitlines()]
    assert steps == [0, 1, 10, 30, 50, 70]


def test_in_a_terminal_a_bar_is_drawn_and_taken_away() -> None:
    out = StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    with RunProgress(console) as progress:
        progress("datasets", "monthly: the table", 1, 2)
        progress("planning", "monthly: all", 0, 5)
        progress("planning", "monthly: one_item", 4, 5)
    text = out.getvalue()
    assert "monthly: one_item" in text
    assert "4/5" in text
    # Transient: the last thing written takes the bar away.
    assert text.endswith("\x1b[2K")


def test_brackets_are_no_markup_in_a_terminal() -> None:
    out = StringIO()
    with RunProgress(Console(file=out, width=100, force_terminal=True, color_system=None)) as progress:
        progress("[/x]", "s like '[error][/x]%'", 4, 5)
    assert re.search(r"\[/x\] .*s like '\[error\]\[/x\]%'", out.getvalue())


def test_the_time_that_is_left_is_by_the_speed_of_the_phase() -> None:
    out = StringIO()
    times = iter([0.0, 15.0, 110.0, 310.0, 400.0, 500.0, 515.0, 560.0, 590.0])
    with RunProgress(Console(file=out), lambda: next(times)) as progress:
        for done, share in ((0, 0.0), (500, 0.1), (550, 0.04), (560, 0.25)):
            progress("tpcds", "warming up", done, 600, share)
        # Rounds go on with the same work.
        progress("tpcds", "round 1", 1, 6, 0.5)
        # Tables are another phase, of steps that are alike.
        for done in (0, 1, 2, 3):
            progress("tables", "made", done, 4)
    assert out.getvalue().splitlines() == [
        "tpcds: warming up (0/600)",
        "tpcds: warming up (500/600)",
        "tpcds: warming up (550/600)",
        "tpcds: warming up, 16 min left (560/600)",
        "tpcds: round 1, 7 min left (1/6)",
        "tables: made (0/4)",
        "tables: made (1/4)",
        "tables: made, 1 min left (2/4)",
        "tables: made (3/4)",
    ]
