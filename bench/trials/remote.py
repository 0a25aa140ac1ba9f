"""Filtered reads of copies of a table on an S3 server with the delays of stores that are far away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from icebench.bench.engines.access import scheme_of
from icebench.bench.engines.engine import EngineMissing
from icebench.bench.execution.context import NO_DELAY, Context
from icebench.bench.execution.trial import Bench, Measurement, Trial
from icebench.bench.records.case import EVERYTHING, NONE, Case
from icebench.bench.tables.store_copies import copied_to
from icebench.bench.trials.scanning import Scanning
from icebench.bench.trials.subject import Subject, Unmeasured
from icebench.errors import EngineError


def remote(subject: object, context: Context) -> Iterator[Measurement]:
    """The rows that each filter keeps, from a bucket without delays and from those of the definition's profiles."""
    assert isinstance(subject, Subject)
    case, options = subject.case("remote"), context.options
    columns = subject.chosen(options.columns, subject.scanned, "remote.columns")
    if scheme_of(subject.location):
        yield Unmeasured(case=case, reason="copies are made of local tables")
        return
    copies = {}
    for done, bucket in enumerate(buckets := (NO_DELAY, *options.profiles)):
        context.progress("tables", f"{subject.layout}: copying to {bucket}", done, len(buckets))
        try:
            access = context.store()
            folder = re.sub(r"\W+", "-", f"{subject.workload} {subject.layout}")
            copies[bucket] = copied_to(subject.location, f"s3://{bucket}/{folder}", access)
        except (EngineMissing, EngineError) as reason:
            yield Unmeasured(case=case, reason=str(reason))
            return
        context.access.add(copies[bucket], access)
    filters = {**({EVERYTHING: None} if options.everything else {}), **subject.filters}
    truth = subject.truth
    for name, text in filters.items():
        yield _Passing(
            Scanning(
                case=case,
                tables={f"{bucket}, {name}": location for bucket, location in copies.items()},
                columns=columns,
                filters={name: text},
                base=f"{NO_DELAY}, {name}",
                counts_work=True,
                truth=None if truth is None else lambda _: truth(NONE),
            )
        )


@dataclass(frozen=True)
class _Passing:
    """Scans of tables that end with the run: no program can read them afterwards."""

    scans: Scanning

    @property
    def case(self) -> Case:
        return self.scans.case

    def trials(self, bench: Bench) -> Iterator[Trial]:
        for trial in self.scans.trials(bench):
            yield replace(trial, evidence=replace(trial.evidence, table=""))
