from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.markdown import Markdown

from icebench.bench.markdown import escaped, escaped_block


def shown(markdown: str) -> str | None:
    """The text of a paragraph; None where anything in it is markup."""
    opening, inline, closing = Markdown(markdown).parsed
    parts = inline.children or []
    if (opening.type, closing.type) != ("paragraph_open", "paragraph_close"):
        return None
    return (
        "".join(part.content for part in parts) if {part.type for part in parts} <= {"text", "text_special"} else None
    )


@pytest.mark.parametrize(
    "text",
    [
        "a*b*_c_ [x](javascript:1) `y` # <b>",
        "**bold** __init__ ~~gone~~",
        "![x](y.png) [x][y] <http://a.b>",
        "[x]: http://a.b",
        "# heading",
        "> quote",
        "- item",
        "+ item",
        "1. item",
        "2) item",
        "---",
        "===",
        r"C:\*temp\_x and a\|b",
        "&lt;b> &#42; AT&T",
    ],
)
def test_text_of_a_run_is_no_markup(text: str) -> None:
    assert shown(escaped_block(text)) == text


@given(st.text(st.sampled_from("ab1 *_`~[]()<>#+-=.!&;:|\\\"'"), min_size=1).filter(lambda text: text.strip()))
def test_any_text_shows_as_it_is(text: str) -> None:
    assert shown(escaped_block(text)) == " ".join(text.split())


@pytest.mark.parametrize("text", ["store_sales", "0.92x [0.785, 1.08], of 3", "-3 %", "1.5 s", "a # b > c - d"])
def test_what_is_no_markup_stays_as_it_is(text: str) -> None:
    assert escaped_block(text) == text


def test_a_box_of_a_list_is_none() -> None:
    assert escaped_block("[x] done") == r"[x\] done"


def test_a_cell_may_begin_with_what_would_begin_a_list() -> None:
    assert escaped("- not measured") == "- not measured"
    assert escaped_block("- not measured") == r"\- not measured"
