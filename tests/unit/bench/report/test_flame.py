from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.gate.decisions.outcome import CaseOutcome, Outcome
from icebench.bench.gate.decisions.stacks import Stacks, tree
from icebench.bench.gate.decisions.time_verdict import Stand, ratio_of
from icebench.bench.report.flame import graphs, render_regression

functions = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(tuple)
profiles = st.dictionaries(functions, st.integers(1, 9).map(float), min_size=1).map(lambda found: list(found.items()))


@given(profiles, profiles)
def test_boxes_lie_within_the_box_above_and_beside_each_other(base: Stacks, head: Stacks) -> None:
    for graph in graphs(tree(base), tree(head)):
        above = [(0.0, 100.0)]
        for row in graph.rows:
            spans = [(box.left, box.left + box.width) for box in row]
            assert all(any(left >= a - 0.01 and right <= b + 0.01 for a, b in above) for left, right in spans)
            assert all(right <= left + 0.01 for (_, right), (left, _) in pairwise(spans))
            above = spans


def test_both_sides_have_one_scale_and_what_grew_is_warm() -> None:
    base: Stacks = [(("scan", "decode"), 1.0), (("scan", "open"), 1.0)]
    head: Stacks = [(("scan", "decode"), 3.0), (("scan", "open"), 0.5), (("scan", "tiny"), 0.001)]
    one, two = graphs(tree(base), tree(head))
    assert [row[0].width for row in one.rows[:2]] == [57.127, 57.127]
    assert two.rows[0][0].width == 100.0
    assert {box.function: box.heat for box in two.rows[2]} == {"decode": 100, "open": -57}
    assert {box.heat for row in one.rows for box in row} == {0}
    assert two.rows[2][0].title == "decode: 3 s, 85.7%; the other side 1 s"


def test_the_page_says_which_counters_differ_and_escapes_names() -> None:
    stacks: Stacks = [(("<listcomp>",), 0.01)]
    case = CaseOutcome(stand=Stand.REGRESSED, ratio=ratio_of([0.3] * 25), stacks=[stacks, stacks])
    outcome = Outcome(base="b" * 40, head="h" * 40, cases={"scan/a": case}, notes=["scan/a: files_planned decreased"])
    page = render_regression(outcome)
    assert "<li>scan/a: files_planned decreased</li>" in page
    assert "&lt;listcomp&gt;: 10 ms" in page
    assert "<listcomp>" not in page
    assert page == render_regression(outcome)
