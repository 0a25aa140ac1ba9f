"""Checks plans against the table's files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

from icebench.bench.engines.engine import Plan
from icebench.bench.errors import Disagreement, WrongAnswer
from icebench.bench.truth.manifests import FileEntry


def check_files(plan: Plan, files: Mapping[str, FileEntry], *, everything: bool) -> None:
    """A plan has no file that is not the table's, and without a filter it is all of the table's files.

    Raises:
        Disagreement: It is not so.
    """
    if strangers := plan.files - files.keys():
        raise Disagreement(f"plans {describe(strangers)} that the table does not have")
    if everything and (missing := files.keys() - plan.files):
        raise WrongAnswer(f"without a filter, does not plan {describe(missing)} of the table")


def check_rows(plan: Plan, matching: Mapping[str, int]) -> None:
    """A plan has every file with a row that the filter keeps, of which `matching` has the number.

    Raises:
        WrongAnswer: It is not so.
    """
    if missed := matching.keys() - plan.files:
        rows = sum(matching[path] for path in missed)
        raise WrongAnswer(f"does not plan {describe(missed)} with {rows} matching rows: its scans lose rows")


def plan_checksum(plan: Plan, files: Mapping[str, FileEntry]) -> str:
    """A checksum of the planned files that a rebuilt table gives again, though its files have other names: over their
    row counts."""
    counts = sorted(files[path].records for path in plan.files)
    return hashlib.sha256(repr(counts).encode()).hexdigest()[:20]


def describe(paths: Collection[str]) -> str:
    """How many files, and one of them."""
    example = min(paths).rpartition("/")[2]
    return f"{len(paths)} files (such as {example})" if len(paths) > 1 else f"1 file ({example})"
