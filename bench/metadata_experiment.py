"""Definitions of experiments on tables that are metadata alone: planning them (``kind = "metadata"``), and committing
the files that they describe (``kind = "commits"``).

``datasets/planning.toml`` explains every key. Errors are as those of `bench.experiment`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

from bench.definition import Definition, typed
from bench.engines.registry import ENGINES
from bench.errors import ConfigError
from bench.experiment import DEFAULT_SEED, Repetitions, SparkDefinition, load_of_kind, spark_definition
from bench.workloads.metadata_files import DELETES, NARROW, Deletes, MetadataFiles

KIND, COMMITS = "metadata", "commits"
WRITERS = ("icebench", "iceberg-java")


@dataclass(frozen=True, kw_only=True)
class MetadataTable:
    """A table of an experiment.

    Args:
        name: Under which it is recorded.
        files: What its manifests describe.
        engines: Measured on it, a part of the experiment's.
        writers: Whose manifests are planned from, each as a table of its own.
        fresh: Whether plans in fresh processes, and their memory, are measured.
    """

    name: str
    files: MetadataFiles
    engines: tuple[str, ...]
    writers: tuple[str, ...]
    fresh: bool


@dataclass(frozen=True, kw_only=True)
class MetadataExperiment:
    """A complete definition of a run.

    `kind` says whether the tables are planned or their files committed. `warm_seconds` is how long each engine works
    before anything is recorded; `case_seconds` how long an engine may take for all its rounds of a case, so that slow
    ones run fewer. `seed` orders the rounds.
    """

    kind: str
    name: str
    description: str
    tables: tuple[MetadataTable, ...]
    engines: tuple[str, ...]
    repetitions: Repetitions
    warm_seconds: float
    case_seconds: float
    spark: SparkDefinition
    seed: int

    @property
    def digest(self) -> str:
        """A hash of everything that the definition says."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def restricted(self, only: Sequence[str], repetitions: int | None) -> MetadataExperiment:
        """The experiment with only the tables and engines among these names, and other repetitions.

        Raises:
            ConfigError: A name is nothing of this experiment.
        """
        tables = [table for table in self.tables if table.name in only] or self.tables
        engines = tuple(name for name in self.engines if name in only) or self.engines
        known = {table.name for table in self.tables} | set(self.engines)
        if strange := [name for name in only if name not in known]:
            raise ConfigError(f"unknown name {strange[0]!r}; known: {', '.join(sorted(known))}", path="--only")
        kept = (replace(t, engines=tuple(name for name in t.engines if name in engines)) for t in tables)
        often = self.repetitions if repetitions is None else replace(self.repetitions, repetitions=repetitions)
        return replace(self, tables=tuple(kept), engines=engines, repetitions=often)


def load_metadata_experiment(path: Path | str) -> MetadataExperiment | None:
    """The experiment in a TOML file, or of that name; None where the definition is of another kind.

    Raises:
        ConfigError: No such file or name, not TOML, or a wrong definition; the message starts with the file's name.
    """
    return load_of_kind(path, (KIND, COMMITS), parse_metadata_experiment)


def parse_metadata_experiment(values: dict[str, Any]) -> MetadataExperiment:
    """The experiment that parsed TOML defines.

    Raises:
        ConfigError: A key, type or value is wrong.
    """
    root = Definition(values)
    kind = root.text("kind", known=(KIND, COMMITS))
    engines = root.names("engines", known=ENGINES, what="engine")
    experiment = MetadataExperiment(
        kind=kind,
        name=root.text("name"),
        description=root.text("description", "no description"),
        tables=tuple(_table(path, value, engines) for path, value in root.items("tables")),
        engines=engines,
        repetitions=Repetitions(
            repetitions=root.whole("repetitions", 5, least=1), warmups=root.whole("warmups", 1, least=0)
        ),
        warm_seconds=root.number("warm_seconds", 3.0, least=0),
        case_seconds=root.number("case_seconds", 10.0, least=0),
        spark=spark_definition(root.table("spark")),
        seed=root.whole("seed", DEFAULT_SEED, least=0),
    )
    root.done()
    names = [table.name for table in experiment.tables]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"two tables are named {twice[0]!r}", path="tables")
    if not names:
        raise ConfigError("must have at least one table", path="tables")
    return experiment


def _table(path: str, value: object, engines: tuple[str, ...]) -> MetadataTable:
    values = Definition(typed(value, dict, "a table", path), path)
    table = MetadataTable(
        name=values.text("name"),
        files=MetadataFiles(
            files=values.whole("files", least=1),
            columns=values.whole("columns", NARROW, least=NARROW),
            partitioned=values.flag("partitioned", default=True),
            clustered=values.flag("clustered", default=True),
            deletes=cast("Deletes", values.text("deletes", "none", known=DELETES)),
            seed=values.whole("seed", DEFAULT_SEED, least=0),
        ),
        engines=values.names("engines", list(engines), known=engines, what="engine"),
        writers=values.names("writers", ["icebench"], known=WRITERS, what="writer"),
        fresh=values.flag("fresh", default=False),
    )
    values.done()
    return table
