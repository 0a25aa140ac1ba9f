"""What labels of charts are shortened to."""

from __future__ import annotations

import re

import pytest

from icebench.bench.report.labels import common_phrase, shortened

NEVER, EVERY = "deletion vectors, never compacted", "deletion vectors, compacted every 10"
_WORD = re.compile(r"[^\W_]+(?:[.,:-]\d+)*")


def test_what_fits_is_as_it_is() -> None:
    assert shortened(["a b", "c\nd"], 3) == {"a b": "a b", "c\nd": "c\nd"}
    assert common_phrase([NEVER, EVERY], 40) == ""


@pytest.mark.parametrize("most", [17, 26, 30, 36])
@pytest.mark.parametrize("wrapped", [False, True])
def test_no_word_is_cut_into_another(most: int, *, wrapped: bool) -> None:
    texts = [NEVER, EVERY, "append_only table of 2001-02-03 (files=1,000, level=1.5)"]
    words = {word for text in texts for word in _WORD.findall(text)}
    for text, short in shortened(texts, most, wrapped=wrapped).items():
        for line in short.split("\n"):
            assert len(line) <= most
            *_, last = line.split("\N{HORIZONTAL ELLIPSIS}")
            assert all(word in words for word in _WORD.findall(last)), (text, short)


def test_lines_that_begin_and_end_alike_keep_the_words_in_which_they_differ() -> None:
    texts = [f"the same long beginning of {word} with the same long end" for word in ("counts", "count", "counters")]
    short = shortened(texts, 30)
    assert len(set(short.values())) == 3
    for text, word in zip(texts, ("counts", "count", "counters"), strict=True):
        assert re.search(rf"\b{word}\b", short[text])


def test_only_a_whole_phrase_is_common() -> None:
    assert common_phrase([NEVER, EVERY], 30) == "deletion vectors, "
    assert common_phrase([NEVER], 30) == ""
    assert common_phrase([NEVER, "deletion vectors, "], 30) == ""
    assert common_phrase([f"sorted (level={'9' * n})" for n in (20, 30)], 30) == ""
    assert common_phrase([f"sorted, fast{end}" for end in (", " + "x" * 30, "er, " + "x" * 30)], 30) == "sorted, "


def test_a_line_is_wrapped_after_a_phrase_or_before_a_bracket() -> None:
    texts = [NEVER, "sorted by day (metrics.default=full)", "one word after the other, a"]
    found = shortened(texts, 26, wrapped=True)
    assert list(found.values()) == [
        "deletion vectors,\nnever compacted",
        "sorted by day\n(metrics.default=full)",
        "one word after the other,\na",
    ]
