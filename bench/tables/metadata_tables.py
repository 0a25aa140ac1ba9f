"""Tables that are metadata alone: their manifests describe files which do not exist, and nothing but planning reads
them. Written by this project's engine, and written again by Iceberg Java, whose manifests compress and block otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import icebench
from icebench.bench.engines.iceberg_java import IcebergJava
from icebench.bench.tables.cache import DatasetCache, base_key, engine_writers, source_digest
from icebench.bench.workloads.metadata_files import MetadataFiles

TABLE = "bench.sales"

_ROOT = Path(__file__).resolve().parents[2]
_MADE_BY = (
    *(_ROOT / "bench/workloads" / name for name in ("metadata_files.py", "draws.py")),
    Path(__file__),
    *engine_writers(),
)
"""Programs that decide what is in the manifests."""

_MOST_IN_COMMIT = 10_000
_FEWEST_COMMITS = 10
_MOST_STATISTICS = 1_000_000
"""Columns times files of one commit, which is what bounds the memory that making a table takes."""


def commits_of(files: MetadataFiles) -> list[range]:
    """The files that each commit adds, by their ordinals: as many commits as there are to be manifests, or at least ten
    if there are files enough."""
    if files.manifests:
        ends = [files.files * number // files.manifests for number in range(files.manifests + 1)]
        return [range(start, end) for start, end in pairwise(ends)]
    fair = max(1_000, -(-files.files // _FEWEST_COMMITS))
    size = max(1, min(_MOST_IN_COMMIT, fair, _MOST_STATISTICS // files.columns))
    return [range(start, min(start + size, files.files)) for start in range(0, files.files, size)]


def find_or_build(files: MetadataFiles, cache: DatasetCache, *, report: Callable[[int], None]) -> str:
    """The metadata file of the table with these files, from the cache or made now, a commit at a time.

    Args:
        files: What the manifests describe.
        cache: Where tables are kept.
        report: Takes how many files have been added so far.

    Raises:
        DatasetFailed: The disk refused.
        EngineError: The engine could not write.
    """
    commits = commits_of(files)
    key = {"files": asdict(files), "in commit": len(commits[0]), "made by": source_digest(_MADE_BY)}

    def build(folder: Path) -> dict[str, Any]:
        catalog = icebench.load_catalog(str(folder))
        properties = {"format-version": "3" if files.deletes == "vectors" else "2"}
        if files.manifests:
            properties |= {
                "commit.manifest-merge.enabled": "false",
                "commit.manifest.target-size-bytes": str((1 << 31) - 1),
            }
        table = catalog.create_table(
            TABLE, files.schema(), partition_spec=files.partition_fields(), properties=properties
        )
        for add in (files.data_files, files.delete_files):
            for each in commits:
                if batch := add(table.location, each.start, each.stop):
                    table.add_files(batch, check_duplicate_files=False)  # each has a name of its own
                report(each.stop)
        return {"metadata_location": table.metadata_location}

    location: str = cache.find_or_build("metadata", key, build)["metadata_location"]
    return location


def rewritten_by_java(base: str, java: IcebergJava, cache: DatasetCache) -> str:
    """The metadata file of a table with the same data manifests in the same order, written again by Iceberg Java.

    Args:
        base: The metadata file of the table to write again; its delete manifests are kept as they are.
        java: Iceberg Java.
        cache: Where tables are kept.

    Raises:
        DatasetFailed: The disk refused.
    """
    key = {**base_key(base), "java": java.version}

    def build(folder: Path) -> dict[str, Any]:
        metadata = folder / "metadata"
        metadata.mkdir()
        values = json.loads(Path(base).read_bytes())
        # Iceberg Java wants a table where it is said to be, and commits beside the file that it was loaded from.
        (metadata / "v1.metadata.json").write_text(json.dumps({**values, "location": str(folder)}), encoding="utf-8")
        (metadata / "version-hint.text").write_text("1", encoding="utf-8")
        return {"metadata_location": java.rewrite_manifests(str(folder))}

    location: str = cache.find_or_build("metadata-java", key, build)["metadata_location"]
    return location
