"""`icebench case`: a case of a run in its engine's own words, a program to read, to run and to send to its authors."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import click

from icebench.bench.cli.context import Context, pass_context
from icebench.bench.cli.report import find_run
from icebench.bench.cli.terminal import write_text
from icebench.bench.definition import Definition
from icebench.bench.engines.registry import ENGINES, EngineEntry
from icebench.bench.engines.script import Quoted, Script, program
from icebench.bench.errors import ConfigError
from icebench.bench.execution.measurement import kind_of
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.execution.spark_use import SparkDefinition, spark_settings
from icebench.bench.java_home import use_java_home
from icebench.bench.records.case import Case, Measured
from icebench.bench.report.compare import median
from icebench.bench.report.quantities import count, quantity

_SHOWN = 20
_ERROR = re.compile(r"\w[\w.]*(?:Error|Exception)\b.*:")


@click.command("case")
@click.argument("words", nargs=-1, metavar="WORD...")
@click.option("--of", type=click.Path(path_type=Path), metavar="RUN", help="Of this run, not the latest.")
@click.option("--run", "runs", is_flag=True, help="Run it in a process of its own.")
@pass_context
def case(context: Context, *, words: tuple[str, ...], of: Path | None, runs: bool) -> None:
    """Print a case as its engine's authors would write it: a program that needs nothing of icebench.

    WORDS name the case: layout, measurement, filter, engine, cold or warm. Those of several cases list them.
    With --run the program runs: the time of each repetition, and the number of rows.
    """
    path = context.places.latest_run() if of is None else find_run(context, of)
    run = read_run(path)
    found = matching(run, words)
    out = context.terminal.out
    if len(found) != 1:
        for words_of_case in _words(run, found[:_SHOWN]):
            out.print(shlex.join(words_of_case), markup=False, soft_wrap=True)
        if len(found) > _SHOWN:
            out.print(f"... and {len(found) - _SHOWN:,} more: add words", markup=False)
        return
    text = program_of(run, found[0])
    if not runs:
        write_text(out, text)
        return
    for line in run_program(text):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def matching(run: Run, words: Sequence[str]) -> list[Measured]:
    """The cases of a run that have a query and all of these words.

    Raises:
        ConfigError: There is none.
    """
    asked = [each for each in run.measured if each.evidence.query]
    if not asked:
        raise ConfigError("has no case whose query was recorded", path=run.run_id)
    named = _words(run, asked)
    found = [each for each, own in zip(asked, named, strict=True) if set(words) <= set(own)]
    if not found:
        known = dict.fromkeys(word for own in named for word in own)
        unknown = [word for word in words if word not in known]
        what = f"{', '.join(unknown)}; known: {', '.join(known)}" if unknown else " ".join(words)
        raise ConfigError(f"has no case {what}", path=run.run_id)
    return found


def _words(run: Run, cases: Sequence[Measured]) -> list[tuple[str, ...]]:
    """What distinguishes each of some cases from the others of their run."""
    several = len({each.case.workload for each in run.measured}) > 1

    def words(case: Case) -> tuple[str, ...]:
        parts = (case.layout, case.measurement, case.configuration, case.filter, case.engine, case.cache)
        return tuple(dict.fromkeys(part for part in (case.workload if several else "", *parts) if part))

    return [words(each.case) for each in cases]


def program_of(run: Run, measured: Measured) -> str:
    """The program of a case.

    Raises:
        ConfigError: Its engine has none.
    """
    case, evidence = measured.case, measured.evidence
    entry = ENGINES.get(case.engine)
    is_plan = case.measurement == "planning"
    scripts: Mapping[str, Script] = resolve_name(entry.scripts) if entry is not None and entry.scripts else {}
    script = scripts.get("plan" if is_plan else "scan")
    if script is None or entry is None or not evidence.table:
        raise ConfigError(
            f"no program of {case.measurement} is known, only the query: {evidence.query}", path=case.engine
        )
    quoted = Quoted(
        title=_title(run, measured),
        query=evidence.query,
        location=evidence.table,
        filter=evidence.detail.get("filter") or None,
        cache=case.cache,
        is_plan=is_plan,
    )
    return program(script, quoted, _spark_conf(run.environment, entry) if entry.needs_spark else {})


def _title(run: Run, measured: Measured) -> str:
    case = measured.case
    (words,) = _words(run, [measured])
    said = shlex.join(["icebench", "case", *words, "--of", run.run_id])
    metric = kind_of(case.measurement).names(case)[0]
    wanted = (case.workload, case.layout, case.engine, case.measurement, case.label, case.cache, metric)
    record = next((r for r in run.records if r.key == wanted), None)
    if record is None:
        return said
    rounds = count(len(record.samples), "round")
    return f"{said}\n{metric} there: {quantity(median(record), 's')}, the median of {rounds} in a process that was warm"


def _spark_conf(environment: Mapping[str, Any], entry: EngineEntry) -> dict[str, str]:
    """Properties of the session that the definition of a run asks for, here."""
    values = Definition(environment.get("definition") or {}).table("spark")
    asked = SparkDefinition(master=values.text("master", "local[2]"), conf=values.texts("conf"))
    settings = spark_settings(asked, Path(tempfile.gettempdir()))
    return (settings if not entry.spark_conf else resolve_name(entry.spark_conf)(settings)).conf()


def run_program(text: str) -> list[str]:
    """What a program prints, run in a process of its own.

    Raises:
        ConfigError: It failed; with its last words.
    """
    with tempfile.TemporaryDirectory(prefix="icebench-case-") as folder:
        path = Path(folder) / "case.py"
        path.write_text(text, encoding="utf-8")
        environment = dict(os.environ)
        if "pyspark" in text:
            environment |= {"JAVA_HOME": str(use_java_home()), "PYSPARK_PYTHON": sys.executable}
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, check=False, env=environment, cwd=folder
        )
    if done.returncode:
        raise ConfigError(f"the program failed: {_error_in(done.stderr)[:500]}", path="case")
    return done.stdout.splitlines()


def _error_in(said: str) -> str:
    """The line that names the last error; messages may go on below it, with a query and a mark under its text."""
    lines = [line for line in said.splitlines() if any(map(str.isalpha, line))]
    errors = [line for line in lines if _ERROR.match(line)]
    return (errors or lines or ["it says nothing"])[-1].strip()
