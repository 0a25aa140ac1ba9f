"""The four measurements on one table, in order; what one cannot do, or does wrong, is recorded and stops no other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bench.engines.engine import normalised
from bench.errors import BenchError
from bench.experiment import MEASUREMENTS, Repetitions
from bench.measure.brute.manifests import DATA, FileEntry, live_files
from bench.measure.brute.metadata import TableJson, load_table_json
from bench.measure.brute.truth import GroundTruth
from bench.measure.decimals import measure_decimals
from bench.measure.deletes import measure_deletes
from bench.measure.oracle import NoTruth
from bench.measure.planning import measure_planning
from bench.measure.pruning import measure_pruning
from bench.measure.recorder import CaseId
from bench.measure.subject import Bench, Subject


def measure(bench: Bench, subject: Subject, measurements: Collection[str], often: Mapping[str, Repetitions]) -> None:
    """Make these measurements on a table.

    Args:
        bench: The engines, and where to record.
        subject: The table.
        measurements: Names out of `MEASUREMENTS`.
        often: How often each timed measurement runs.

    Raises:
        DatasetFailed: The table's metadata or manifests cannot be read.
    """
    table = load_table_json(subject.metadata_location)
    files = [file for file in live_files(table) if file.content == DATA]
    by_path = {normalised(file.path): file for file in files}
    for name in MEASUREMENTS:
        if name not in measurements:
            continue
        try:
            match name:
                case "planning":
                    measure_planning(bench, subject, by_path, often[name])
                case "pruning":
                    _prune(bench, subject, table, files)
                case "decimals":
                    measure_decimals(bench, subject, often[name])
                case _:
                    measure_deletes(bench, subject, often[name])
        except BenchError as error:
            bench.recorder.fail(CaseId(layout=subject.layout, measurement=name), error)


def _prune(bench: Bench, subject: Subject, table: TableJson, files: Sequence[FileEntry]) -> None:
    try:
        measure_pruning(bench, subject, GroundTruth(table, files))
    except NoTruth as reason:
        bench.recorder.skip(CaseId(layout=subject.layout, measurement="pruning"), str(reason))
