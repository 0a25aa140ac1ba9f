"""Experiment definitions: what to generate, how to lay it out, which engines to measure, and how often.

A definition is TOML (``datasets/default.toml`` explains every key). Parsing gives a complete, checked value or a
`ConfigError` of one line that starts with the path of what is wrong: ``layouts[1]: unknown layout 'x'; known: ...``.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from bench.definition import Definition, typed
from bench.engines.registry import ENGINES
from bench.errors import ConfigError
from bench.layouts.registry import LAYOUTS

T = TypeVar("T")

_HERE = Path(__file__).resolve().parent
DEFINITIONS = next((d for d in (_HERE / "datasets", _HERE.parent / "datasets") if d.is_dir()), _HERE / "datasets")
"""Where the definitions that come with the project are: in the package once it is installed, else in the repository."""

MEASUREMENTS = ("planning", "pruning", "decimals", "deletes")
"""What can be measured, in the order in which it is."""

WORKLOADS = ("tpcds",)
TIMED = ("planning", "decimals", "deletes")
"""The measurements that have repetitions; pruning counts, it has no clock."""

DEFAULT_SEED = 1


@dataclass(frozen=True, kw_only=True)
class WorkloadDefinition:
    """Which rows: the generator, its scale factor, its seed, the Zipf exponent of the items (0 is uniform), and whether
    store_sales gets the decimals of more than nine digits that TPC-DS lacks."""

    kind: str
    scale: float
    seed: int
    skew: float
    wide_decimals: bool


@dataclass(frozen=True, kw_only=True)
class TableDefinition:
    """How the table is written, equal for every layout: `files` data files (about; a month is never split unevenly)."""

    files: int
    format_version: int


@dataclass(frozen=True, kw_only=True)
class DeleteDefinition:
    """What is deleted, merge-on-read, for the deletes measurement.

    Each of `fractions` is the share of the rows that one variant of the table has deleted, spread evenly over its
    files by customer. `refresh` adds a variant with the workload's own refresh deletes (date ranges).
    """

    fractions: tuple[float, ...]
    refresh: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Repetitions:
    """How often a timed case runs: `warmups` unrecorded rounds, then `repetitions` recorded ones."""

    repetitions: int
    warmups: int


@dataclass(frozen=True, kw_only=True)
class SparkDefinition:
    """The Spark session that generation and the Spark engines share."""

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A complete definition of a run.

    `filters` maps a name to SQL text that every engine parses with its own parser. `columns` are those of the decimals
    measurement; none means every decimal column. `seed` orders the runs; the rows have their own seed in `workload`.
    """

    name: str
    description: str
    workload: WorkloadDefinition
    table: TableDefinition
    layouts: tuple[str, ...]
    engines: tuple[str, ...]
    measurements: tuple[str, ...]
    filters: Mapping[str, str]
    columns: tuple[str, ...]
    deletes: DeleteDefinition
    repetitions: Mapping[str, Repetitions]
    spark: SparkDefinition
    seed: int = DEFAULT_SEED

    def as_json(self) -> dict[str, Any]:
        """The definition as JSON values."""
        return asdict(self)

    @property
    def digest(self) -> str:
        """A hash of everything that the definition says."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:16]

    def restricted(
        self,
        *,
        layouts: Sequence[str] | None = None,
        engines: Sequence[str] | None = None,
        measurements: Sequence[str] | None = None,
    ) -> Experiment:
        """The same experiment with only these layouts, engines or measurements; None keeps those it has.

        Raises:
            ConfigError: A name that is not known, or an empty list.
        """

        def chosen(key: str, names: Sequence[str] | None, known: Collection[str]) -> tuple[str, ...]:
            own: tuple[str, ...] = getattr(self, key)
            what = key.removesuffix("s")
            return own if names is None else Definition({key: list(names)}).names(key, known=known, what=what)

        return replace(
            self,
            layouts=chosen("layouts", layouts, LAYOUTS),
            engines=chosen("engines", engines, ENGINES),
            measurements=chosen("measurements", measurements, MEASUREMENTS),
        )


def load_experiment(path: Path | str) -> Experiment:
    """The experiment in a TOML file, or of that name among the definitions that come with the project.

    Raises:
        ConfigError: No such file or name, not TOML, or a wrong definition; the message starts with the file's name.
    """
    found = find_experiment(path)
    try:
        return parse_experiment(found.read_text(encoding="utf-8"))
    except ConfigError as error:
        raise ConfigError(str(error), path=str(found)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", path=str(found)) from error


def known_experiments() -> dict[str, Path]:
    """Name -> file of the definitions that come with the project."""
    return {path.stem: path for path in sorted(DEFINITIONS.glob("*.toml"))}


def parse_experiment(text: str) -> Experiment:
    """The experiment that TOML text defines.

    Raises:
        ConfigError: Not TOML, or a key, type or value is wrong.
    """
    try:
        root = Definition(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not TOML: {error}") from error
    timed = {name: root.table(name) for name in TIMED}
    experiment = Experiment(
        name=root.text("name"),
        description=root.text("description", "no description"),
        workload=_workload(root.table("workload")),
        table=_table(root.table("table")),
        layouts=root.names("layouts", known=LAYOUTS, what="layout"),
        engines=root.names("engines", known=ENGINES, what="engine"),
        measurements=root.names("measurements", list(MEASUREMENTS), known=MEASUREMENTS, what="measurement"),
        filters=_filters(root),
        columns=_columns(timed["decimals"]),
        deletes=_deletes(timed["deletes"]),
        repetitions=_repetitions(root, timed),
        spark=spark_definition(root.table("spark")),
        seed=root.whole("seed", DEFAULT_SEED, least=0),
    )
    for values in (*timed.values(), root):
        values.done()
    if not experiment.filters and {"planning", "pruning"} & set(experiment.measurements):
        raise ConfigError("planning and pruning need at least one filter", path="filters")
    return experiment


def load_of_kind(path: Path | str, kinds: Collection[str], parse: Callable[[dict[str, Any]], T]) -> T | None:
    """The definition in a TOML file, or of that name, if its ``kind`` is one of `kinds`; None where it is another.

    Raises:
        ConfigError: No such file or name, not TOML, or a wrong definition; the message starts with the file's name.
    """
    found = find_experiment(path)
    try:
        values = tomllib.loads(found.read_text(encoding="utf-8"))
        return parse(values) if values.get("kind") in kinds else None
    except (ConfigError, tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(error), path=str(found)) from error


def find_experiment(path: Path | str) -> Path:
    """The file of a definition, given itself or by the name of one that comes with the project.

    Raises:
        ConfigError: There is none.
    """
    if Path(path).is_file():
        return Path(path)
    known = known_experiments()
    if str(path) in known:
        return known[str(path)]
    raise ConfigError(f"no such file, and no experiment of that name; known: {', '.join(known)}", path=str(path))


def _workload(values: Definition) -> WorkloadDefinition:
    parsed = WorkloadDefinition(
        kind=values.text("kind", known=WORKLOADS),
        scale=values.number("scale", least=0, above=True),
        seed=values.whole("seed", DEFAULT_SEED, least=0),
        skew=values.number("skew", 0.0, least=0),
        wide_decimals=values.flag("wide_decimals", default=False),
    )
    values.done()
    return parsed


def _table(values: Definition) -> TableDefinition:
    parsed = TableDefinition(
        files=values.whole("files", 61, least=1), format_version=values.whole("format_version", 2, least=1)
    )
    if parsed.format_version not in (2, 3):
        raise ConfigError("row-level deletes need format version 2 or 3", path=values.at("format_version"))
    values.done()
    return parsed


def _filters(root: Definition) -> dict[str, str]:
    filters = root.texts("filters")
    for name, text in filters.items():
        if not text.strip():
            raise ConfigError("must not be empty", path=f"filters.{name}")
    return filters


def _columns(values: Definition, key: str = "columns") -> tuple[str, ...]:
    return tuple(typed(value, str, "a column's name", path) for path, value in values.items(key, []))


def _deletes(values: Definition) -> DeleteDefinition:
    fractions = []
    for path, value in values.items("fractions", [0.01]):
        fraction = float(typed(value, (int, float), "a number", path))
        if not 0 < fraction < 1:
            raise ConfigError(f"{fraction:g} is not a fraction between 0 and 1", path=path)
        if fraction in fractions:
            raise ConfigError(f"{fraction:g} is listed twice", path=path)
        fractions.append(fraction)
    return DeleteDefinition(
        fractions=tuple(fractions), refresh=values.flag("refresh", default=False), columns=_columns(values)
    )


def _repetitions(root: Definition, timed: Mapping[str, Definition]) -> dict[str, Repetitions]:
    """How often each timed measurement runs: its own table's say, else the root's."""
    usual = root.whole("repetitions", 5, least=1)
    usual_warmups = root.whole("warmups", 1, least=0)
    return {
        name: Repetitions(
            repetitions=values.whole("repetitions", usual, least=1),
            warmups=values.whole("warmups", usual_warmups, least=0),
        )
        for name, values in timed.items()
    }


def spark_definition(values: Definition) -> SparkDefinition:
    """The session that the table ``spark`` of a definition asks for; raises ConfigError."""
    parsed = SparkDefinition(master=values.text("master", "local[2]"), conf=values.texts("conf"))
    values.done()
    return parsed
