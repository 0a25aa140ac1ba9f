from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, decode, encode

NAMES = st.text(min_size=1, max_size=12)
RESULTS = st.builds(
    CaseResult, counters=st.dictionaries(NAMES, st.integers(0, 2**63), max_size=5), checksum=st.text(max_size=16)
)
BASELINES = st.builds(
    Baseline,
    cases=st.dictionaries(NAMES, RESULTS, max_size=4),
)


@given(BASELINES)
def test_what_was_encoded_decodes_to_the_same(baseline: Baseline) -> None:
    assert decode(encode(baseline)) == baseline


def test_the_text_is_sorted_and_has_a_line_for_each_counter() -> None:
    text = encode(
        Baseline(
            cases={"b": CaseResult(counters={"z": 1, "a": 2}, checksum="c"), "a": CaseResult(counters={}, checksum="d")}
        )
    )
    assert text.index('"a": {') < text.index('"b": {')
    assert '        "a": 2,\n        "z": 1\n' in text
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1, column 2: not JSON"),
        ("[]", "the file: an object is expected, found []"),
        ('{"format": 9}', "format: is 9, this version reads 2"),
        ('{"format": 2}', "cases: an object is expected, found nothing"),
        (
            '{"format": 2, "environment": {}, "cases": {"a": {"checksum": "c", "counters": {"n": -1}}}}',
            "cases.a.counters.n: a whole number from 0 up is expected, found -1",
        ),
        (
            '{"format": 2, "environment": {}, "cases": {"a": {"checksum": "c", "counters": {"n": true}}}}',
            "cases.a.counters.n: a whole number from 0 up is expected, found true",
        ),
        ('{"format": 2, "environment": {}, "cases": {"a": {"counters": {}}}}', "cases.a.checksum: a text is expected"),
    ],
)
def test_a_damaged_baseline_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(text)
    assert str(caught.value).startswith(message)
