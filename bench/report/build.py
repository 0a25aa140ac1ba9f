"""A run as a report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from icebench.bench.costs.costing import Costing
from icebench.bench.definition import Definition
from icebench.bench.execution.pace import BUILD
from icebench.bench.execution.run_file import Run
from icebench.bench.layouts.axes import Axes
from icebench.bench.report.answer import answer_of
from icebench.bench.report.compare import Records
from icebench.bench.report.findings import Claims, findings_of
from icebench.bench.report.knobs import knobs_of
from icebench.bench.report.layout_costs import (
    LayoutCost,
    claimed,
    costs_p_values,
    costs_section,
    layout_costs,
    payments,
)
from icebench.bench.report.layouts import layouts_section
from icebench.bench.report.model import Fact, Finding, Report, Section
from icebench.bench.report.quantities import count, quantity
from icebench.bench.report.remarks import failures_of, remarks_of
from icebench.bench.report.sections import sections_of
from icebench.bench.statistics.claims import CONFIDENCE, assumptions

GLOSSARY = (
    Fact(
        "Median and interval",
        "The middle sample, and an interval that has the true median with 95% confidence. Of one process: two samples, "
        "whatever the distribution (three samples attain 75%, five 93.75%), that bound the median of this process; "
        "another differs by what processes do (see Claim). Of several processes: Student's t over them, as for a "
        "ratio. One stalled run moves neither.",
    ),
    Fact(
        "Ratio",
        "Pairs of samples from the same round: within each process the Hodges-Lehmann estimate, over cases the "
        f"geometric mean, and over processes an interval of {CONFIDENCE:.0%} by Student's t. What rounds and processes "
        "are assumed to differ by (see Claim) has a part in it, so that one process has an interval, too.",
    ),
    Fact(
        "MB",
        "2^20 bytes, as for properties of tables; a KB has 2^10 and a GB 2^30. Only MB/s, a speed, are 10^6 bytes.",
    ),
    Fact("Round", "Every case once, in an order drawn anew, so that a drift of the machine touches all alike."),
    Fact("False-positive rate", "The share of the files without a matching row that is planned."),
    Fact("Recall", "The share of the files with a matching row that is planned; below 100% rows are lost."),
    Fact("Work counters", "What was done, not how long it took: exact, and the same in every run on every machine."),
)


def build_report(run: Run, *, results_file: str) -> Report:
    """Everything that a report of this run says.

    Args:
        run: With or without records, complete or not.
        results_file: How the user would name the run's file, for the command that makes this report again.
    """
    records = Records(run.records)
    opening, said, claims, costs = _opening(records, run.environment)
    remarks = remarks_of(run)
    return Report(
        title=f"icebench: {run.experiment if run.records else 'nothing'}",
        subtitle=_subtitle(run),
        source=f"run {run.run_id}",
        answer=answer_of(costs, claims.findings(), remarks, measured=bool(records)),
        findings=findings_of(records, said, failures_of(run), claims),
        remarks=remarks,
        sections=(*opening, *sections_of(records)),
        facts=tuple(_facts(run)),
        reproduce=tuple(_reproduce(run, results_file)),
        complete=run.complete,
        glossary=(*GLOSSARY, Fact("Claim", assumptions(run.spread))) if records else (),
    )


def _opening(
    records: Records, environment: Mapping[str, Any]
) -> tuple[list[Section], list[Finding], Claims, dict[str, list[LayoutCost]]]:
    """The answer, workload by workload: layouts by filter, what each costs and when it pays, which knob matters. Its
    claims, and those of the findings to come, are corrected together."""
    asked = Definition(_mapping(environment, "definition"))
    costing, axes = Costing.parse(asked), Axes.parse(asked.table("axes"))
    parts = []
    for workload, found in records.by_workload():
        own = replace(found, layout_order=found.names("layout"))
        parts.append((workload, own, layout_costs(own, costing), knobs_of(own, axes)))
    p_values = [p for *_, costs, knobs in parts for p in (*costs_p_values(costs), *(knobs.p_values if knobs else ()))]
    claims = Claims.of(records, p_values)
    sections: list[Section] = []
    said: list[Finding] = []
    for number, (workload, own, costs, knobs) in enumerate(parts, 1):
        costs[:] = claimed(costs, claims.least)
        made = (
            layouts_section(own, costing),
            costs_section(costs, costing) if costs else None,
            None if knobs is None else knobs.section,
        )
        sections += [section.of_workload(workload, number) for section in made if section is not None]
        findings = (*payments(costs), *(() if knobs is None else knobs.findings(claims.least)))
        said += [finding.of_workload(workload) for finding in findings]
    return sections, said, claims, {workload: costs for workload, _, costs, _ in parts}


def _subtitle(run: Run) -> str:
    if not run.records:
        return f"Run {run.run_id}: no measurement finished."
    factor = run.environment.get("scale")
    scale = "" if factor is None else f" at scale {factor:g}"
    workloads = dict.fromkeys(record.workload for record in run.records)
    workload = next(iter(workloads)) if len(workloads) == 1 else count(len(workloads), "workload")
    # What builds tables is no engine that is measured.
    asked = [record for record in run.records if record.measurement != BUILD]
    counted = {"layout": len({record.layout for record in run.records})}
    counted |= {name: len({getattr(record, name) for record in asked}) for name in ("engine", "measurement")}
    what = ", ".join(count(number, name) for name, number in counted.items() if number)
    return f"{workload}{scale}: {what}. Run {run.run_id}, {run.environment.get('started', 'at an unknown time')}."


def _facts(run: Run) -> Iterator[Fact]:
    hardware, software = _mapping(run.environment, "hardware"), _mapping(run.environment, "software")
    git = _mapping(run.environment, "git")
    memory = hardware.get("memory_bytes")
    yield Fact("Processor", f"{hardware.get('cpu', 'unknown')}, {hardware.get('architecture', 'unknown')}")
    yield Fact("Cores", str(hardware.get("cores", "unknown")))
    yield Fact("Memory", "unknown" if memory is None else quantity(float(memory), "bytes"))
    yield Fact("Operating system", str(software.get("os", "unknown")))
    yield Fact("Python", str(software.get("python", "unknown")))
    yield Fact("Java", str(software.get("java") or "none"))
    spark = _mapping(software, "spark")
    if spark:
        yield Fact("Spark session", ", ".join(f"{name} {value}" for name, value in spark.items()))
    yield Fact("Engines", _pairs(_mapping(run.environment, "engines")))
    yield Fact("Packages", _pairs(_mapping(software, "packages")))
    if git.get("revision"):
        yield Fact("Revision", f"{git['revision']}{', with uncommitted changes' if git.get('dirty') else ''}")
    yield Fact("Environment id", str(run.environment.get("id", "unknown")))


def _reproduce(run: Run, results_file: str) -> Iterator[str]:
    revision = _mapping(run.environment, "git").get("revision")
    if revision:
        yield f"git checkout {revision}"
    command = run.environment.get("command")
    if isinstance(command, list) and command:
        yield shlex.join(["icebench", *(str(part) for part in command)])
    elif run.records:
        factor = run.environment.get("scale")
        yield f"icebench run {shlex.quote(run.experiment)}" + ("" if factor is None else f" --scale {factor:g}")
    yield f"icebench report {shlex.quote(results_file)}"


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "unknown"
