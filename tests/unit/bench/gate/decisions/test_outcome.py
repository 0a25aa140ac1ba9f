from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from icebench.bench.gate.decisions.outcome import CaseOutcome, Outcome, as_json, as_junit, as_markdown
from icebench.bench.gate.decisions.time_verdict import Stand, ratio_of

OUTCOME = Outcome(
    base="a" * 40,
    head="worktree",
    cases={
        "plan": CaseOutcome(stand=Stand.PASS, ratio=ratio_of([0.0] * 8)),
        "scan": CaseOutcome(
            stand=Stand.REGRESSED, ratio=ratio_of([0.3] * 25), stacks=[[(("decode",), 0.001)], [(("decode",), 0.002)]]
        ),
        "dead": CaseOutcome(stand=Stand.FAILED, note="head: ValueError: <gone>"),
        "noisy": CaseOutcome(stand=Stand.INCONCLUSIVE, ratio=ratio_of([0.3, -0.3] * 8)),
        "none": CaseOutcome(stand=Stand.INCOMPARABLE, note="base: KeyError"),
    },
)


def test_rows_begin_with_the_worst() -> None:
    assert [row[0] for row in OUTCOME.rows()] == ["scan", "dead", "none", "noisy", "plan"]
    assert OUTCOME.rows()[[row[0] for row in OUTCOME.rows()].index("scan")] == (
        "scan",
        "regressed",
        "1.350",
        "1.350 to 1.350",
        "25",
    )


def test_json_has_all_of_it() -> None:
    found = json.loads(as_json(OUTCOME))
    assert (found["verdict"], found["exit_code"]) == ("regressed", 1)
    assert found["cases"]["scan"]["ratio"]["pairs"] == 25


def test_junit_distinguishes_failures_from_errors_and_what_was_not_decided() -> None:
    suite = ET.fromstring(as_junit(OUTCOME))
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
    }
    assert [e.get("message") for e in suite.iter("error")] == ["head: ValueError: <gone>", "base: KeyError"]
    assert [e.get("message") for e in suite.iter("failure")] == ["1.350 times the base"]


def test_counters_are_failures_of_their_own() -> None:
    outcome = Outcome(base="b", head="h", counters=["scan: rows_decoded increased 1 -> 2"])
    suite = ET.fromstring(as_junit(outcome))
    assert [(c.get("classname"), c.get("name")) for c in suite] == [("counters", "scan")]
    assert "- `scan: rows_decoded increased 1 -> 2`" in as_markdown(outcome)
    assert outcome.exit_code == 1


def test_the_comment_has_a_table_and_where_the_time_went() -> None:
    text = as_markdown(OUTCOME)
    assert text.startswith("### icebench gate: regressed\n")
    assert "| scan | regressed | 1.350 | 1.350 to 1.350 | 25 |" in text
    assert "| `decode` | 1.00 | 2.00 |" in text
    assert "dead: head: ValueError: &lt;gone>" in text


def test_what_an_error_says_is_no_markup_in_the_comment() -> None:
    note = "head: Invalid: a|b <img src=x> `c` [d](javascript:1) \x1b[31m"
    outcome = Outcome(base="b", head="h", cases={"plan/x": CaseOutcome(stand=Stand.FAILED, note=note)}, notes=["# n"])
    text = as_markdown(outcome)
    assert r"plan/x: head: Invalid: a\|b &lt;img src=x> \`c\` [d\](javascript:1) \\x1b[31m" in text.splitlines()
    assert r"- \# n" in text.splitlines()


def test_junit_is_xml_whatever_an_error_says() -> None:
    note = "head: OSError: \x1b[31mno such file\x1b[0m \x00 \ud800 \uffff \x85 <é>\t\U0001f600"
    outcome = Outcome(base="b", head="h\x01", cases={"plan": CaseOutcome(stand=Stand.FAILED, note=note)}, notes=[])
    suite = ET.fromstring(as_junit(outcome).encode())
    assert [error.get("message") for error in suite.iter("error")] == [
        r"head: OSError: \x1b[31mno such file\x1b[0m \x00 \ud800 \uffff " + "\x85 <é>\t\U0001f600"
    ]
    assert suite.get("name") == r"icebench gate b..h\x01"
