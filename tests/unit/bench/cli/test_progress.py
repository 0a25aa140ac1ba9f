from __future__ import annotations

from io import StringIO

from rich.console import Console

from bench.cli.progress import RunProgress


def test_without_a_terminal_each_step_is_a_plain_line() -> None:
    out = StringIO()
    with RunProgress(Console(file=out, width=20)) as progress:
        progress("datasets", "monthly: [the] table that has a long name", 0, 2)
        progress("planning", "monthly: all", 1, 2)
    assert out.getvalue() == (
        "datasets: monthly: [the] table that has a long name (0/2)\nplanning: monthly: all (1/2)\n"
    )


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
