"""What a comparison of two revisions found, and its forms: JSON, JUnit, Markdown, a table's rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from xml.etree import ElementTree as ET

from icebench.bench.gate.decisions.counter_verdict import ExitCode
from icebench.bench.gate.decisions.stacks import Stacks, differences
from icebench.bench.gate.decisions.time_verdict import WORST_FIRST, Ratio, Stand, overall
from icebench.bench.markdown import escaped, escaped_block

_NO_XML = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 forbids, and control characters that it discourages."""

_CODES = {
    Stand.PASS: ExitCode.PASS,
    Stand.REGRESSED: ExitCode.REGRESSION,
    Stand.FAILED: ExitCode.ERROR,
    Stand.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    Stand.INCOMPARABLE: ExitCode.CONFIGURATION,
}


@dataclass(frozen=True, kw_only=True)
class CaseOutcome:
    """What is known of one case.

    Args:
        stand: The verdict on it.
        ratio: Of the pairs that decided; None where there are none.
        note: What went wrong, or what was counted.
        stacks: The profiles of base and of head; none unless it regressed.
    """

    stand: Stand
    ratio: Ratio | None = None
    note: str = ""
    stacks: Sequence[Stacks] = ()

    @property
    def profile(self) -> list[tuple[str, float, float]]:
        """The functions whose own time differs most: name, seconds of base and of head."""
        return differences(self.stacks[0], self.stacks[1]) if self.stacks else []


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known of all cases; `counters` are differences that head's baseline does not accept."""

    base: str
    head: str
    cases: Mapping[str, CaseOutcome] = field(default_factory=dict)
    counters: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def stand(self) -> Stand:
        """The verdict."""
        if self.counters:
            return Stand.REGRESSED
        return overall({name: case.stand for name, case in self.cases.items()})

    @property
    def exit_code(self) -> ExitCode:
        """What the process returns."""
        return _CODES[self.stand]

    def notes_of(self, case: str) -> list[str]:
        """The notes on a case."""
        return [note for note in self.notes if note.startswith(f"{case}: ")]

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Case, verdict, ratio, bounds, pairs; the worst first."""
        return [
            (name, case.stand.value, *_ratio_cells(case.ratio))
            for name, case in sorted(self.cases.items(), key=lambda item: (WORST_FIRST.index(item[1].stand), item[0]))
        ]


def _ratio_cells(ratio: Ratio | None) -> tuple[str, str, str]:
    if ratio is None:
        return "", "", ""
    bounds = "" if ratio.low is None or ratio.high is None else f"{ratio.low:.3f} to {ratio.high:.3f}"
    return f"{ratio.estimate:.3f}", bounds, str(ratio.pairs)


def as_json(outcome: Outcome) -> str:
    """All of it."""
    return json.dumps({"verdict": outcome.stand, "exit_code": outcome.exit_code, **asdict(outcome)}, indent=1) + "\n"


def as_junit(outcome: Outcome) -> str:
    """A test for each case: failures are regressions, errors what could not be run or compared, the rest skipped."""
    suite = ET.Element("testsuite", name=f"icebench gate {outcome.base[:12]}..{outcome.head[:12]}")
    for text in outcome.counters:
        case = ET.SubElement(suite, "testcase", classname="counters", name=text.partition(": ")[0])
        ET.SubElement(case, "failure", message=text)
    for name, found in outcome.cases.items():
        case = ET.SubElement(suite, "testcase", classname="time", name=name)
        message = found.note or (f"{found.ratio.estimate:.3f} times the base" if found.ratio else found.stand.value)
        match found.stand:
            case Stand.REGRESSED:
                ET.SubElement(case, "failure", message=message)
            case Stand.FAILED | Stand.INCOMPARABLE:
                ET.SubElement(case, "error", message=message)
            case Stand.INCONCLUSIVE:
                ET.SubElement(case, "skipped", message=message)
    kinds = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for attribute, tag in kinds.items():
        suite.set(attribute, str(len(list(suite.iter(tag)))))
    for element in suite.iter():
        element.attrib.update({name: _legible(value) for name, value in element.attrib.items()})
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _legible(text: str) -> str:
    """The text with escapes for characters that XML cannot have."""
    return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def as_markdown(outcome: Outcome) -> str:
    """A comment on a pull request, in which what errors say is no markup."""
    lines = [f"### icebench gate: {outcome.stand}", "", f"`{outcome.base[:12]}` → `{outcome.head[:12]}`", ""]
    lines += [f"- {escaped_block(_legible(note))}" for note in outcome.notes]
    if outcome.counters:
        lines += ["", "Work that head's baseline does not accept:", "", *(f"- `{text}`" for text in outcome.counters)]
    if outcome.cases:
        lines += ["", "| case | verdict | processor time, head / base | one-sided 95 % bounds | pairs |"]
        lines += ["|---|---|---:|---:|---:|", *(f"| {' | '.join(map(escaped, row))} |" for row in outcome.rows())]
    for name, case in outcome.cases.items():
        lines += ["", escaped_block(_legible(f"{name}: {case.note}"))] if case.note else []
        if case.profile:
            lines += ["", f"<details><summary>{name}: where the time went</summary>", ""]
            lines += ["| function | base, ms | head, ms |", "|---|---:|---:|"]
            lines += [f"| `{name}` | {base * 1e3:.2f} | {head * 1e3:.2f} |" for name, base, head in case.profile]
            lines += ["", "</details>"]
    return "\n".join(lines) + "\n"
