"""Experiment definitions: which rows or files, how they are laid out, which engines and measurements, and how often.

A definition is TOML (``datasets/default.toml`` explains the keys). Parsing gives a complete, checked value or a
`ConfigError` of one line that starts with the path of what is wrong: ``layouts[1]: unknown layout 'x'; known: ...``.
The parsed value keeps what it was parsed from, so that a run can be repeated, or gone on with, from its file.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from icebench.bench.costs.costing import FIRST, Costing
from icebench.bench.definition import DEFINITIONS, Definition, copied, one_of, typed
from icebench.bench.engines.registry import ENGINES
from icebench.bench.errors import ConfigError
from icebench.bench.layouts.axes import Axes
from icebench.bench.layouts.layout import FORMAT_VERSION, TARGET_SIZE, Layout
from icebench.bench.layouts.registry import FILE as LAYOUTS
from icebench.bench.layouts.registry import known_layouts, parse_layouts
from icebench.bench.workloads.dated_sales import DatedSales
from icebench.bench.workloads.definitions import (
    KINDS,
    TPCDS,
    DescribedWorkload,
    MaintenanceWorkload,
    ReadingWorkload,
    RowsWorkload,
    Workload,
)
from icebench.bench.workloads.rows import SPREADS, Rows

MEASUREMENTS = {
    "planning": "from an opened table to the list of files, cold and warm",
    "pruning": "planned files against the files that hold a matching row",
    "decimals": "all rows of the decimal columns delivered",
    "deletes": "what applying deletes adds to a scan",
    "filtered": "rows delivered under each filter, and the work that it takes",
    "reading": "what the storage of decimals, deletes and width add to a scan",
    "commits": "one append of files that are described and do not exist, alone and after another writer",
    "maintenance": "upkeep of equal copies of a table: rewriting, expiry, orphans",
}
"""What can be measured, in the order in which it is, and what it is."""

UNTIMED = frozenset({"pruning"})
"""Counted, not timed: they have no repetitions."""

DELETE_KINDS = ("position", "equality")

DEFAULT_SEED = 1
DEFAULT_FILES = 61
"""Of each layout: one for each month of the sales, and one for those without a date."""


@dataclass(frozen=True, kw_only=True)
class DeleteDefinition:
    """What is deleted for the deletes measurement: a variant of every table for each combination, and `refresh` adds
    one with the workload's own refresh deletes.

    Args:
        fractions: Shares of the rows.
        kinds: Out of `DELETE_KINDS`; by position means deletion vectors in format version 3.
        spreads: Out of `icebench.bench.workloads.rows.SPREADS`.
        commits: Over how many commits, and so delete files of each data file, they are spread.
        refresh: Whether there is the workload's own.
        columns: What is scanned; none means every decimal column.
    """

    fractions: tuple[float, ...]
    kinds: tuple[str, ...]
    spreads: tuple[str, ...]
    commits: tuple[int, ...]
    refresh: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often and how long.

    Args:
        repetitions: Recorded rounds, by measurement.
        warmups: Unrecorded runs of a case before them, at least, by measurement.
        warm_seconds: A case runs unrecorded until its processor time falls no more, but no longer than this.
        case_seconds: A case has fewer rounds where they would take longer than this in all, but at least one.
    """

    repetitions: Mapping[str, int]
    warmups: Mapping[str, int]
    warm_seconds: float
    case_seconds: float = math.inf

    def rounds(self, measurement: str, seconds: float) -> int:
        """How many recorded rounds for a case of which one takes so long."""
        most = self.repetitions[measurement]
        return most if math.isinf(self.case_seconds) else max(1, min(most, int(self.case_seconds / max(seconds, 1e-9))))


@dataclass(frozen=True, kw_only=True)
class SparkDefinition:
    """The Spark session that generation and the Spark engines share."""

    master: str
    conf: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A complete definition of a run.

    `filters` maps a name to SQL text that every engine parses with its own parser; without any, each workload's own
    hold. `measured_layouts` names, by measurement, the only layouts that it is made on; a layout with a varied knob is
    another one. `columns` are those of the decimals measurement and `filtered_columns` those of filtered reads; none
    means the workload's choice, or every decimal column. `filtered_everything` adds a read without a filter to the
    filtered ones.
    `processes` is how many run all rounds, one after the other: what favours a case for the life of a process differs
    between them. `seed` orders the runs; the rows have their own seed in their workload. `values` is what all of it was
    parsed from.
    """

    name: str
    description: str
    workloads: tuple[Workload, ...]
    layouts: tuple[Layout, ...]
    axes: Axes
    costing: Costing
    engines: tuple[str, ...]
    measurements: tuple[str, ...]
    filters: Mapping[str, str]
    columns: tuple[str, ...]
    filtered_columns: tuple[str, ...]
    filtered_everything: bool
    measured_layouts: Mapping[str, tuple[str, ...]]
    deletes: DeleteDefinition
    pace: Pace
    processes: int
    spark: SparkDefinition
    seed: int
    values: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """A hash of everything that the definition says."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def scale(self) -> float | None:
        """The scale factor of its rows; None where nothing is generated by one."""
        rows = (each.rows for each in self.workloads if isinstance(each, RowsWorkload))
        return next((each.tpcds.scale for each in rows if isinstance(each, DatedSales)), None)

    def measures(self, measurement: str, layout: str) -> bool:
        """Whether the measurement is made on tables of that layout."""
        only = self.measured_layouts.get(measurement)
        return measurement in self.measurements and (only is None or layout in only)

    def adjusted(
        self, *, scale: float | None = None, repetitions: int | None = None, only: Sequence[str] = ()
    ) -> Experiment:
        """The same experiment with another scale or other repetitions, and of what `only` names that alone: layouts,
        engines, measurements, and workloads or their parts.

        Raises:
            ConfigError: A name is not known, or nothing has a scale.
        """
        values = copied(self.values)
        if scale is not None:
            if self.scale is None:
                raise ConfigError(f"{self.name} has tables of fixed sizes: no --scale", path="--scale")
            for each in _listed(values["workload"]):
                if each["kind"] == TPCDS:
                    each["scale"] = scale
        if repetitions is not None:
            values["repetitions"] = repetitions
            for name in MEASUREMENTS:
                values.get(name, {}).pop("repetitions", None)
        for key, names in self._sorted(only).items():
            if key == "workload":
                pairs = zip(_listed(values[key]), self.workloads, strict=True)
                values[key] = [each for each, made in pairs if made.name in names]
            elif key in ("parts", "actions"):
                for each in _listed(values["workload"]):
                    each[key] = names
            else:
                values[key] = names
        self._drop_what_is_left_out(values)
        return parse_values(values)

    @staticmethod
    def _drop_what_is_left_out(values: dict[str, Any]) -> None:
        """Axes and a baseline of layouts that are none of the experiment any more."""
        layouts = values.get("layouts", [])
        varied = values.get("axes", {}).get("layouts")
        if layouts and varied is not None:
            values["axes"]["layouts"] = [name for name in varied if name in layouts]
            if not values["axes"]["layouts"]:
                del values["axes"]
        if layouts and values.get("baseline", layouts[0]) not in layouts:
            del values["baseline"]
        for own in (values[name] for name in MEASUREMENTS if layouts and "layouts" in values.get(name, {})):
            own["layouts"] = [name for name in own["layouts"] if name in layouts] or layouts

    def _sorted(self, names: Sequence[str]) -> Mapping[str, list[str]]:
        """The names by the key of the definition that they are of."""
        upkeep = [each for each in self.workloads if isinstance(each, MaintenanceWorkload)]
        known: dict[str, str] = {
            **{each.name: "workload" for each in self.workloads},
            **{part: "parts" for each in self.workloads if isinstance(each, ReadingWorkload) for part in each.parts},
            **dict.fromkeys((*known_layouts(), *(each.name for each in self.layouts)), "layouts"),
            **{name: "actions" for each in upkeep for name in each.actions},
            **dict.fromkeys(ENGINES, "engines"),
            **dict.fromkeys(MEASUREMENTS, "measurements"),
        }
        found: dict[str, list[str]] = {}
        for name in names:
            one_of(name, known, "name", "--only")
            found.setdefault(known[name], []).append(name)
        return found


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
    return {path.stem: path for path in sorted(DEFINITIONS.glob("*.toml")) if path != LAYOUTS}


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


def parse_experiment(text: str) -> Experiment:
    """The experiment that TOML text defines.

    Raises:
        ConfigError: Not TOML, or a key, type or value is wrong.
    """
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # also of numbers with too many digits
        raise ConfigError(f"not TOML: {error}") from error
    return parse_values(values)


def parse_values(values: Mapping[str, Any]) -> Experiment:
    """The experiment that parsed TOML defines.

    Raises:
        ConfigError: A key, type or value is wrong.
    """
    root = Definition(values)
    name, description = root.text("name"), root.text("description", "no description")
    engines = root.names("engines", known=ENGINES, what="engine")
    workloads = _workloads(root, engines)
    able = [measurement for measurement in MEASUREMENTS if any(measurement in w.measurements for w in workloads)]
    measurements = root.names("measurements", able, known=MEASUREMENTS, what="measurement")
    if unable := [measurement for measurement in measurements if measurement not in able]:
        kinds = " and ".join(sorted({each.kind for each in workloads}))
        raise ConfigError(f"no {unable[0]} of {kinds}, which have: {', '.join(able)}", path="measurements")
    own = {measurement: root.table(measurement) for measurement in MEASUREMENTS if measurement in able}
    axes, rows = Axes.parse(root.table("axes")), [each.rows for each in workloads if isinstance(each, RowsWorkload)]
    layouts = _layouts(root, rows, axes)
    experiment = Experiment(
        name=name,
        description=description,
        workloads=workloads,
        layouts=layouts,
        axes=axes,
        costing=Costing.parse(root),
        engines=engines,
        measurements=measurements,
        filters=_filters(root),
        columns=_columns(own["decimals"]) if "decimals" in own else (),
        filtered_columns=_columns(own["filtered"]) if "filtered" in own else (),
        filtered_everything=own["filtered"].flag("everything", default=False) if "filtered" in own else False,
        measured_layouts=_measured_layouts(own, layouts),
        deletes=_deletes(own.get("deletes", Definition({}))),
        pace=_pace(root, own),
        processes=root.whole("processes", 1, least=1),
        spark=_spark(root.table("spark")),
        seed=root.whole("seed", DEFAULT_SEED, least=0),
        values=values,
    )
    for table in (*own.values(), root):
        table.done()
    _check_costing(experiment, rows)
    return experiment


def _check_costing(experiment: Experiment, arranged: Sequence[Rows]) -> None:
    """Refuse weights of filters that there are not, and another baseline than a layout."""
    filters = experiment.filters or {name: text for rows in arranged for name, text in rows.filters.items()}
    for name in experiment.costing.weights:
        one_of(name, filters, "filter", "weights")
    if experiment.costing.baseline != FIRST:
        one_of(experiment.costing.baseline, [layout.name for layout in experiment.layouts], "layout", "baseline")


def _workloads(root: Definition, engines: Sequence[str]) -> tuple[Workload, ...]:
    found: list[Workload] = []
    for table in root.tables("workload"):
        kind = table.text("kind", known=KINDS)
        made = KINDS[kind](table)
        table.done()
        if isinstance(made, DescribedWorkload):
            strange = next((each for each in made.engines or () if each not in engines), None)
            if strange is not None:
                one_of(strange, engines, "engine of this experiment", table.at("engines"))
        if made.name in {each.name for each in found} and made.kind != "table":
            raise ConfigError(f"two workloads are named {made.name!r}", path=table.at("name"))
        found.append(made)
    if not found:
        raise ConfigError("must have at least one workload", path="workload")
    return tuple(found)


def _layouts(root: Definition, arranged: Sequence[Rows], axes: Axes) -> tuple[Layout, ...]:
    """The layouts that `layouts` names, of the definition's own and of those that come with the project, or else all of
    its own; with what ``[table]`` says for all of them, and with every combination of the axes that vary them."""
    own, table = parse_layouts(root), root.table("table")
    known = {**known_layouts(), **own}
    default = list(own) if own or not arranged else None
    names = root.names("layouts", default, known=known, what="layout", empty=not arranged)
    files, version = table.whole("files", DEFAULT_FILES, least=1), table.whole("format_version", 2, least=1)
    shared = {FORMAT_VERSION: str(version), **table.properties("properties")}
    table.done()
    for index, name in enumerate(axes.layouts):
        one_of(name, names, "layout of this experiment", f"axes.layouts[{index}]")
    found: list[Layout] = []
    for index, name in enumerate(names):
        path = f"layouts[{index}]"
        properties = {**shared, **known[name].properties}
        at = path if FORMAT_VERSION in known[name].properties else "table.format_version"
        sized = known[name].files is not None or TARGET_SIZE in properties
        usual = replace(known[name], files=known[name].files if sized else files, properties=properties)
        _check_layout(usual, arranged, path, at)
        for layout in axes.varied(usual):
            _check_layout(layout, arranged, "axes", "axes.format_version")
            found.append(layout)
    return tuple(found)


def _check_layout(layout: Layout, arranged: Sequence[Rows], path: str, path_of_version: str) -> None:
    if layout.properties[FORMAT_VERSION] not in ("2", "3"):
        raise ConfigError("row-level deletes need format version 2 or 3", path=path_of_version)
    for rows in arranged:
        layout.check(rows.schema.names, path)


def _filters(root: Definition) -> dict[str, str]:
    filters = root.texts("filters")
    for name, text in filters.items():
        if not text.strip():
            raise ConfigError("must not be empty", path=f"filters.{name}")
    return filters


def _measured_layouts(own: Mapping[str, Definition], layouts: Sequence[Layout]) -> dict[str, tuple[str, ...]]:
    """Those that the tables of measurements name."""
    known = [layout.name for layout in layouts]
    given = [name for name, values in own.items() if known and "layouts" in values.keys()]  # noqa: SIM118 - no mapping
    return {name: own[name].names("layouts", known=known, what="layout") for name in given}


def _columns(values: Definition, key: str = "columns") -> tuple[str, ...]:
    return tuple(typed(value, str, "a column's name", path) for path, value in values.items(key, []))


def _deletes(values: Definition) -> DeleteDefinition:
    fractions = values.shares("fractions", [0.01], above=True)
    for index, fraction in enumerate(fractions):
        if fraction in fractions[:index]:
            raise ConfigError(f"{fraction:g} is listed twice", path=f"{values.at('fractions')}[{index}]")
    commits = values.wholes("commits") or (1,)
    if min(commits) < 1:
        raise ConfigError(f"{min(commits)} is below 1", path=values.at("commits"))
    return DeleteDefinition(
        fractions=fractions,
        kinds=values.names("kinds", ["position"], known=DELETE_KINDS, what="kind"),
        spreads=values.names("spreads", ["random"], known=SPREADS, what="spread"),
        commits=commits,
        refresh=values.flag("refresh", default=False),
        columns=_columns(values),
    )


def _pace(root: Definition, own: Mapping[str, Definition]) -> Pace:
    """How often each measurement runs: its own table's say, else the root's."""
    usual = root.whole("repetitions", 5, least=1)
    usual_warmups = root.whole("warmups", 1, least=0)
    timed = {name: values for name, values in own.items() if name not in UNTIMED}
    return Pace(
        repetitions={name: values.whole("repetitions", usual, least=1) for name, values in timed.items()},
        warmups={name: values.whole("warmups", usual_warmups, least=0) for name, values in timed.items()},
        warm_seconds=root.number("warm_seconds", 2.0, least=0),
        case_seconds=root.number("case_seconds", math.inf, least=0, infinite=True),
    )


def _spark(values: Definition) -> SparkDefinition:
    parsed = SparkDefinition(master=values.text("master", "local[2]"), conf=values.texts("conf"))
    values.done()
    return parsed


def _listed(workload: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a table or a list of tables, as TOML has it
    return workload if isinstance(workload, list) else [workload]
