"""Definitions of reading experiments (``kind = "reading"``): what decimals, deletes and width cost a scan.

``datasets/reading.toml`` explains every key. Errors are as those of `bench.experiment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.definition import Definition, typed
from bench.engines.registry import ENGINES
from bench.errors import ConfigError
from bench.experiment import DEFAULT_SEED, Repetitions, SparkDefinition, load_of_kind, spark_definition
from bench.workloads.reading_files import DELETE_KINDS, KEYS, PATTERNS, Cell, DeleteRows, cells_of

KIND = "reading"
PARTS = ("integers", "decimals", "deletes", "wide", "large")
"""What an experiment has, each measured unless the definition leaves it out."""


@dataclass(frozen=True, kw_only=True)
class WideDefinition:
    """A table of `columns` columns of which `selected` are read, against one that has no others."""

    rows: int
    columns: int
    selected: int


@dataclass(frozen=True, kw_only=True)
class ReadingExperiment:
    """A complete definition of a run.

    Args:
        name: Of the experiment.
        description: In a sentence.
        engines: Names out of the registry.
        parts: Names out of `PARTS`.
        cell_rows: Rows of each table of the decimal matrix, and of the comparison with integers.
        cells: The decimal matrix.
        deletes: The rows that the delete matrix deletes from.
        fractions: Shares of them that are deleted.
        delete_kinds: Names out of `DELETE_KINDS`.
        patterns: Names out of `PATTERNS`.
        equality_fractions: As `fractions`, of equality deletes.
        equality_columns: How many columns equality deletes compare.
        delete_files: Into how many delete files the same equality deletes are spread.
        wide: The wide table.
        large_rows: Rows of the table in large row groups.
        repetitions: How often each case runs.
        case_seconds: An engine runs fewer rounds where it would take longer than this in all, but at least one.
        spark: The session, for engines that need one.
        seed: Orders the rounds, and draws the rows.
    """

    name: str
    description: str
    engines: tuple[str, ...]
    parts: tuple[str, ...]
    cell_rows: int
    cells: tuple[Cell, ...]
    deletes: DeleteRows
    fractions: tuple[float, ...]
    delete_kinds: tuple[str, ...]
    patterns: tuple[str, ...]
    equality_fractions: tuple[float, ...]
    equality_columns: int
    delete_files: tuple[int, ...]
    wide: WideDefinition
    large_rows: int
    repetitions: Repetitions
    case_seconds: float
    spark: SparkDefinition
    seed: int

    def restricted(self, only: Sequence[str], repetitions: int | None) -> ReadingExperiment:
        """The experiment with only the parts and engines among these names, and other repetitions.

        Raises:
            ConfigError: A name is nothing of this experiment.
        """
        known = {*self.parts, *self.engines}
        if strange := [name for name in only if name not in known]:
            raise ConfigError(f"unknown name {strange[0]!r}; known: {', '.join(sorted(known))}", path="--only")
        parts = tuple(name for name in self.parts if name in only) or self.parts
        engines = tuple(name for name in self.engines if name in only) or self.engines
        often = self.repetitions if repetitions is None else replace(self.repetitions, repetitions=repetitions)
        return replace(self, parts=parts, engines=engines, repetitions=often)


def load_reading_experiment(path: Path | str) -> ReadingExperiment | None:
    """The experiment in a TOML file, or of that name; None where the definition is of another kind.

    Raises:
        ConfigError: No such file or name, not TOML, or a wrong definition; the message starts with the file's name.
    """
    return load_of_kind(path, (KIND,), parse_reading_experiment)


def parse_reading_experiment(values: dict[str, Any]) -> ReadingExperiment:
    """The experiment that parsed TOML defines.

    Raises:
        ConfigError: A key, type or value is wrong.
    """
    root = Definition(values)
    root.text("kind", known=(KIND,))
    decimals, deletes, wide, large = (root.table(name) for name in PARTS[1:])
    seed = root.whole("seed", DEFAULT_SEED, least=0)
    experiment = ReadingExperiment(
        name=root.text("name"),
        description=root.text("description", "no description"),
        engines=root.names("engines", known=ENGINES, what="engine"),
        parts=root.names("parts", list(PARTS), known=PARTS, what="part"),
        cell_rows=decimals.whole("rows", least=1),
        cells=cells_of(_wholes(decimals, "precisions"), _shares(decimals, "nulls")),
        deletes=DeleteRows(
            rows=deletes.whole("rows", least=1),
            files=deletes.whole("files", 4, least=1),
            row_groups=deletes.whole("row_groups", 2, least=1),
            seed=seed,
        ),
        fractions=(fractions := _shares(deletes, "fractions")),
        delete_kinds=deletes.names("kinds", list(DELETE_KINDS), known=DELETE_KINDS, what="kind"),
        patterns=deletes.names("patterns", list(PATTERNS), known=PATTERNS, what="pattern"),
        equality_fractions=_shares(deletes, "equality_fractions") or fractions,
        equality_columns=deletes.whole("equality_columns", 1, least=1),
        delete_files=_wholes(deletes, "equality_files"),
        wide=WideDefinition(
            rows=wide.whole("rows", 1, least=1),
            columns=wide.whole("columns", 1, least=1),
            selected=wide.whole("selected", 1, least=1),
        ),
        large_rows=large.whole("rows", 1, least=1),
        repetitions=Repetitions(
            repetitions=root.whole("repetitions", 5, least=1), warmups=root.whole("warmups", 1, least=0)
        ),
        case_seconds=root.number("case_seconds", 3.0, least=0),
        spark=spark_definition(root.table("spark")),
        seed=seed,
    )
    if experiment.wide.selected > experiment.wide.columns:
        raise ConfigError("more columns than the table has", path="wide.selected")
    if experiment.equality_columns > len(KEYS):
        raise ConfigError(
            f"more key columns than the table has, which are {len(KEYS)}", path="deletes.equality_columns"
        )
    for part in (decimals, deletes, wide, large, root):
        part.done()
    return experiment


def _wholes(values: Definition, key: str) -> tuple[int, ...]:
    return tuple(typed(value, int, "a whole number", path) for path, value in values.items(key, []))


def _shares(values: Definition, key: str) -> tuple[float, ...]:
    found = []
    for path, value in values.items(key, []):
        share = float(typed(value, (int, float), "a number", path))
        if not 0 <= share < 1:
            raise ConfigError(f"{share:g} is no share of less than 1", path=path)
        found.append(share)
    return tuple(found)
