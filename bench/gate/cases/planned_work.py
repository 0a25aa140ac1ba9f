"""What `icebench gate --tables` and `icebench.pytest` gate of the plan of a scan.

Every count is exact, and the same in every run on the same files: a plan is counted without what earlier ones decoded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

import pyarrow as pa

import icebench

FILES, BYTES, DELETE_FILES = "files_planned", "bytes_planned", "delete_files_planned"
MANIFESTS, REQUESTS = "manifests_decoded", "requests"
GATED = (FILES, BYTES, DELETE_FILES, MANIFESTS, REQUESTS)
"""Counters of a plan that may not rise."""

_STORAGE_REQUESTS = "storage_requests_"
_SKIPPED_BY = "_skipped_by_"


class Planned(Protocol):
    """What `icebench.Scan.plan` gives, as far as the gate looks at it."""

    @property
    def files(self) -> pa.Table:
        """A row per data file."""
        ...

    @property
    def metadata(self) -> Any:  # noqa: ANN401 - of a class that is not public
        """The table."""
        ...

    @property
    def snapshot(self) -> Any:  # noqa: ANN401 - as above
        """The snapshot; None for an empty table."""
        ...


@dataclass(frozen=True, kw_only=True)
class PlannedWork:
    """What one plan contains, and what planning it cost.

    Args:
        counters: Those of `GATED`, and how many manifests and entries each stage of planning skipped.
        plan: The plan.
    """

    counters: Mapping[str, int]
    plan: Planned = field(repr=False, compare=False)

    @property
    def files(self) -> int:
        """Data files to read."""
        return self.counters[FILES]

    @property
    def bytes(self) -> int:
        """The size of the data files."""
        return self.counters[BYTES]

    @property
    def delete_files(self) -> int:
        """Delete files and deletion vectors that apply to them."""
        return self.counters[DELETE_FILES]

    @property
    def manifests(self) -> int:
        """Manifests that planning read."""
        return self.counters[MANIFESTS]

    @property
    def requests(self) -> int:
        """Requests to the store by planning."""
        return self.counters[REQUESTS]


def planned_work(scan: icebench.Scan) -> PlannedWork:
    """Plan a scan with nothing decoded before, and count.

    Raises:
        EngineError: As `icebench.Scan.plan`.
    """
    counters = icebench.Counters()
    plan = scan.cold(counters).plan()
    counted = counters.as_dict()
    requests = sum(n for counter, n in counted.items() if counter.startswith(_STORAGE_REQUESTS))
    skipped = {counter: n for counter, n in counted.items() if _SKIPPED_BY in counter}
    gated = {counter: counted.get(counter, 0) for counter in GATED}
    return PlannedWork(counters={**gated, BYTES: plan.size_in_bytes, REQUESTS: requests, **skipped}, plan=plan)


def planned_checksum(plan: Planned) -> str:
    """Of the data files, and of the delete files that apply to each: whatever their order, and wherever the table is.

    A file is known by its path below the table's location, a deletion vector by its place in its file, too.
    """
    root = f"{plan.metadata.location.rstrip('/')}/"
    paths = [path.removeprefix(root) for path in plan.files["file_path"].to_pylist()]
    files = zip(paths, _deletes(plan.files["deletes"], root), strict=True)
    return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:20]


def _deletes(column: pa.ChunkedArray, root: str) -> Iterator[list[tuple[str, int]]]:
    """The path and offset of the delete files of each data file; those of the plan are named once, not for each."""
    for chunk in column.chunks:
        references = chunk.flatten()
        named = [
            (each["file_path"].removeprefix(root), each["content_offset"] or 0)
            for each in references.dictionary.to_pylist()
        ]
        own = map(named.__getitem__, references.indices.to_pylist())
        for length in chunk.value_lengths().to_pylist():
            yield sorted(islice(own, length))


def planning_stages(scan: icebench.Scan, counters: Mapping[str, int], before: Mapping[str, int] | None = None) -> str:
    """Which stages of planning let the files through, and why each file is planned.

    Args:
        scan: The scan.
        counters: What was counted of it.
        before: What was counted when it had less, to name the stages that skip less now.

    Raises:
        EngineError: As `icebench.Scan.explain`.
    """
    stages = {counter: n for counter, n in counters.items() if _SKIPPED_BY in counter}
    if before is None:
        idle = [_in_words(counter) for counter, n in stages.items() if n == 0]
        found = [f"Stages that skip nothing: {', '.join(idle)}"] if idle else []
    else:
        fewer = {counter: (n, before[counter]) for counter, n in stages.items() if n < before.get(counter, 0)}
        found = [
            f"Stage that skips less: {_in_words(each)}, {now:,}; {then:,} before" for each, (now, then) in fewer.items()
        ]
        found = found or ["No stage skips less than before: the table has more files"]
    return "\n".join([*found, repr(scan.explain())])


def _in_words(counter: str) -> str:
    """``entries_skipped_by_schema_id`` -> ``entries by schema id``."""
    return counter.replace(_SKIPPED_BY, " by ").replace("_", " ")
