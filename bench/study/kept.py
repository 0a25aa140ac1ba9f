"""The runs that the study's pages are made from: compressed files beside the other results, one a question."""

from __future__ import annotations

import lzma
from pathlib import Path

from icebench.bench.errors import CorruptRecords
from icebench.bench.execution.run_file import Run, read_run
from icebench.bench.study.questions import Question


def kept_file(results: Path, question: Question) -> Path:
    """Where the run of a question is kept below a results directory."""
    return results / "study" / f"{question.name}.jsonl.xz"


def kept_run(results: Path, question: Question) -> Run | None:
    """The run of a question; None where none is kept.

    Raises:
        CorruptRecords: The file is damaged.
    """
    path = kept_file(results, question)
    if not path.exists():
        return None
    try:
        return read_run(path)
    except CorruptRecords as error:
        advice = f"'icebench study {question.name} --again' measures it again"
        raise CorruptRecords(f"{error.reason}; {advice}", location=error.location) from error


def compressed(run: Path) -> bytes:
    """What is kept of a run's file."""
    return lzma.compress(run.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
