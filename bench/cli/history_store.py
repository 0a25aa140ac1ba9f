"""The history as asv keeps results, a file for each revision and reference, so that `asv publish` plots it.

asv calls the folder a machine. What it has no field for is in `requirements`, which it keeps as they are; in `params`
each value would be a line of its own, which only another reference should be. Results of asv's own runs may be beside.
"""

from __future__ import annotations

import fcntl
import math
import os
import tempfile
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.machine import Machine
from asv.results import Results, get_filename
from asv.runner import BenchmarkResult
from asv.util import UserError, is_na, load_json

from icebench.bench.cli.places import write_whole
from icebench.bench.errors import ConfigError
from icebench.bench.gate.decisions.counter_kinds import Kind, kind_of
from icebench.bench.gate.decisions.history import TIME, Entry, Measured

MACHINE = "history"
_SUITE = "history."
_RATIO = f"{_SUITE}time_ratio"
_COUNTER = f"{_SUITE}track_"
_OWN = "icebench"
"""The key of `requirements` that is no package."""


class _RecordedResults(Results):  # type: ignore[misc]
    """A result file, with the one field that asv keeps and has no property for."""

    @property
    def requirements(self) -> dict[str, Any]:
        return self._requirements


def read_history(results: Path) -> list[Entry]:
    """The recorded revisions below a results directory of asv, oldest first.

    Raises:
        ConfigError: A damaged file.
    """
    paths = (path for path in (results / MACHINE).glob("*.json") if path.name != "machine.json")
    return sorted(map(_read, paths), key=lambda entry: (entry.number, _identity(entry)))


def record_revision(results: Path, entry: Entry) -> None:
    """Add a revision: its file appears whole or not at all, and then in asv's list of benchmarks.

    Raises:
        ConfigError: Its file is of another revision or reference, or a file is damaged.
    """
    path = results / get_filename(MACHINE, entry.revision, _environment(entry))
    with _locked(results / MACHINE):
        if path.exists() and _identity(_read(path)) != _identity(entry):
            raise ConfigError(f"is not of {entry.revision} beside {entry.reference}", path=str(path))
        with tempfile.TemporaryDirectory() as making:
            machine = Machine()
            machine.machine = MACHINE
            machine.save(making)
            _results_of(entry).save(making)
            for made in (path.with_name("machine.json"), path):
                write_whole(made, Path(making, MACHINE, made.name).read_text(encoding="utf-8"))
        _describe(results)


def describe_history(results: Path) -> None:
    """Add what is recorded to asv's list of benchmarks, from which each `asv run` drops all but its own suite's.

    Raises:
        ConfigError: A damaged file.
    """
    if (results / MACHINE).is_dir():
        with _locked(results / MACHINE):
            _describe(results)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _describe(results: Path) -> None:
    entries = read_history(results)
    cases = sorted({name for entry in entries for name in entry.cases})
    followed = sorted(counter for counter in _counters(entries) if kind_of(counter) is not Kind.AVOIDED)
    path = results / Benchmarks.get_benchmark_file_path("")
    try:
        known = load_json(path, Benchmarks.api_version).values() if path.exists() else ()
    except UserError as error:
        raise ConfigError(f"damaged: {error}", path=str(path)) from error
    listed = [benchmark for benchmark in known if not benchmark["name"].startswith(_SUITE)]
    listed += [_benchmark(quantity, cases) for quantity in (TIME, *followed)] if cases else []
    with tempfile.TemporaryDirectory() as making:
        config = Config()
        config.results_dir = making
        Benchmarks(config, listed).save()
        write_whole(path, Path(making, path.name).read_text(encoding="utf-8") + "\n")


def _benchmark(quantity: str, cases: Sequence[str]) -> dict[str, Any]:
    """How a quantity is listed for asv, which compares results of one version only."""
    is_time = quantity == TIME
    return {
        "name": _RATIO if is_time else f"{_COUNTER}{quantity}",
        "code": "Processor time divided by that of the reference, which is interleaved with it: the median of pairs of "
        "processes. `icebench history` has the confidence of its changes."
        if is_time
        else f"{quantity}, an exact counter: any difference is a change.",
        "type": "track",
        "unit": "times the reference" if is_time else "bytes" if "bytes" in quantity else quantity.replace("_", " "),
        "version": "1",
        "param_names": ["case"],
        "params": [[repr(case) for case in cases]],
    }


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.revision, entry.reference


def _environment(entry: Entry) -> str:
    """What asv calls the environment, so that a revision has a file for each reference."""
    return f"beside-{entry.reference[:8]}"


def _counters(entries: Sequence[Entry]) -> set[str]:
    return {counter for entry in entries for case in entry.cases.values() for counter in case.counters}


def _results_of(entry: Entry) -> Results:
    own = {
        "number": entry.number,
        "subject": entry.subject,
        "pairs": entry.pairs,
        "error": entry.error,
        "errors": {name: case.error for name, case in entry.cases.items() if case.error},
    }
    made = Results(
        {"machine": MACHINE, "reference": entry.reference},
        {**entry.environment, _OWN: own},
        entry.revision,
        round(datetime.fromisoformat(entry.date).timestamp() * 1000),
        entry.environment.get("python", ""),
        _environment(entry),
        {},
    )
    cases = sorted(entry.cases)
    measured = [entry.cases[name] for name in cases]

    def add(quantity: str, values: Sequence[float | None], samples: Sequence[Sequence[float] | None]) -> None:
        # Without `number` asv makes no interval of the samples: of so few it would be a weight of nothing but chance.
        unknown = [None] * len(cases)
        result = BenchmarkResult(values, samples, unknown, 0, "", None)
        made.add_result(_benchmark(quantity, cases), result, record_samples=True)

    if cases:
        add(TIME, [case.ratio for case in measured], [case.samples or None for case in measured])
    for counter in sorted(_counters([entry])):
        values = [case.counters.get(counter, None if case.error else math.nan) for case in measured]
        add(counter, values, [None] * len(cases))
    return made


def _read(path: Path) -> Entry:
    try:
        found = _RecordedResults.load(str(path), machine_name=MACHINE)
        own = found.requirements[_OWN]
        entry = Entry(
            revision=found.commit_hash,
            number=own["number"],
            date=datetime.fromtimestamp(found.date / 1000, UTC).isoformat(),
            subject=own["subject"],
            reference=found.params["reference"],
            pairs=own["pairs"],
            environment={name: text for name, text in found.requirements.items() if name != _OWN},
            cases=_cases(found, own["errors"]),
            error=own["error"],
        )
        sound = _is_sound(entry)
    except (UserError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigError(f"damaged: {error}", path=str(path)) from error
    if not sound:
        raise ConfigError("damaged: a value of the wrong type", path=str(path))
    return entry


def _cases(found: Results, errors: Mapping[str, str]) -> dict[str, Measured]:
    keys = found.get_all_result_keys()
    if _RATIO not in keys:
        return {}
    (cases,) = params = found.get_result_params(_RATIO)
    counted = {key: found.get_result_value(key, params) for key in keys if key.startswith(_COUNTER)}
    ratios, samples = found.get_result_value(_RATIO, params), found.get_result_samples(_RATIO, params)
    return {
        name: Measured(
            ratio=ratios[place],
            samples=tuple(samples[place] or ()),
            counters={key.removeprefix(_COUNTER): v[place] for key, v in counted.items() if not is_na(v[place])},
            error=errors.get(name, ""),
        )
        for place, name in enumerate(map(literal_eval, cases))
    }


def _is_sound(entry: Entry) -> bool:
    cases = entry.cases.values()
    texts: tuple[object, ...] = (
        *(entry.revision, entry.subject, entry.reference, entry.error),
        *entry.environment.values(),
        *entry.cases,
        *(case.error for case in cases),
    )
    ratios: list[object] = [ratio for case in cases for ratio in (case.ratio, *case.samples) if ratio is not None]
    counts = (entry.number, entry.pairs, *(count for case in cases for count in case.counters.values()))
    return (
        all(isinstance(text, str) for text in texts)
        and all(isinstance(ratio, float) and 0 < ratio < math.inf for ratio in ratios)
        and all(type(count) is int for count in counts)
        and all((case.ratio is None) == bool(case.error) for case in cases)
        and bool(entry.cases) != bool(entry.error)
    )
