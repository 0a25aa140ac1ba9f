"""A workload of files that are described in manifests and do not exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.workloads.gives import Gives
from icebench.bench.workloads.metadata_files import DELETES, NARROW, Deletes, MetadataFiles
from icebench.bench.workloads.workload import DEFAULT_SEED, Workload

WRITERS = ("icebench", "iceberg-java")
_MOST_IN_MANIFEST = 5_000_000
"""Columns times files."""


@dataclass(frozen=True, kw_only=True)
class DescribedWorkload(Workload):
    """Files that are described in manifests and do not exist.

    Args:
        name: Under which they are recorded.
        files: What manifests say of them.
        engines: Measured on them; None for all of the experiment.
        writers: Whose manifests are planned from.
        fresh: Whether plans in fresh processes are measured.
        disk_cache: Whether plans of engines that keep decoded manifests on a local disk are measured with them there.
    """

    gives: ClassVar[Gives] = Gives.DESCRIBED_FILES

    kind: str = "described-files"

    name: str
    files: MetadataFiles
    engines: tuple[str, ...] | None
    writers: tuple[str, ...]
    fresh: bool
    disk_cache: bool
    known_bytes: ClassVar[bool] = False

    @classmethod
    def parse(cls, values: Definition) -> DescribedWorkload:
        files = values.whole("files", least=1)
        manifests = values.whole("manifests", 0, least=0)
        columns = values.whole("columns", NARROW, least=NARROW)
        if manifests > files:
            raise ConfigError(f"{manifests} manifests of {files} files", path=values.at("manifests"))
        if manifests and columns * files // manifests > _MOST_IN_MANIFEST:
            reason = f"{files // manifests:,} files of {columns:,} columns in a manifest take too much memory to write"
            raise ConfigError(reason, path=values.at("manifests"))
        named = [str(value) for _, value in values.items("engines", [])]
        return cls(
            name=values.text("name"),
            files=MetadataFiles(
                files=files,
                columns=columns,
                partitioned=values.flag("partitioned", default=True),
                manifests=manifests,
                clustered=values.flag("clustered", default=True),
                deletes=cast("Deletes", values.text("deletes", "none", known=DELETES)),
                seed=values.whole("seed", DEFAULT_SEED, least=0),
            ),
            engines=tuple(named) or None,
            writers=values.names("writers", ["icebench"], known=WRITERS, what="writer"),
            fresh=values.flag("fresh", default=False),
            disk_cache=values.flag("disk_cache", default=False),
        )
