"""Which rows are deleted from a table to see what that costs, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.workloads.rows import SPREADS, KeyRange, Rows

DELETE_KINDS = ("position", "equality")
REFRESH = "refresh"
"""The variant with the workload's own refresh deletes."""


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

    @classmethod
    def parse(cls, values: Definition) -> DeleteDefinition:
        """What the measurement's table of a definition says.

        Raises:
            ConfigError: A key, type or value is wrong.
        """
        fractions = values.shares("fractions", [0.01], above=True)
        for index, fraction in enumerate(fractions):
            if fraction in fractions[:index]:
                raise ConfigError(f"{fraction:g} is listed twice", path=f"{values.at('fractions')}[{index}]")
        commits = values.wholes("commits") or (1,)
        if min(commits) < 1:
            raise ConfigError(f"{min(commits)} is below 1", path=values.at("commits"))
        return cls(
            fractions=fractions,
            kinds=values.names("kinds", ["position"], known=DELETE_KINDS, what="kind"),
            spreads=values.names("spreads", ["random"], known=SPREADS, what="spread"),
            commits=commits,
            refresh=values.flag("refresh", default=False),
            columns=values.columns(),
        )

    @property
    def combinations(self) -> int:
        """How many variants a table has."""
        return len(self.kinds) * len(self.spreads) * len(self.fractions) * len(self.commits) + self.refresh


@dataclass(frozen=True, kw_only=True)
class DeleteVariant:
    """Rows that are deleted from a table.

    Args:
        name: Under which it is recorded.
        filters: SQL; each is deleted in a commit of its own.
        keys: The same as ranges of keys, for equality deletes; empty for others.
    """

    name: str
    filters: Sequence[str]
    keys: Sequence[KeyRange] = ()


def delete_variants(deletes: DeleteDefinition, rows: Rows) -> Iterator[DeleteVariant]:
    """Every combination that the definition asks for.

    Raises:
        ConfigError: The workload has no refresh deletes.
    """
    for kind in deletes.kinds:
        for spread in deletes.spreads:
            for share in deletes.fractions:
                for commits in deletes.commits:
                    name = f"{share * 100:.6g}%"
                    name += f", {spread}" if spread != "random" else ""
                    name += ", by equality" if kind == "equality" else ""
                    name += f", in {commits} commits" if commits > 1 else ""
                    keys = rows.delete_keys(share, spread).split(commits)
                    filters = [part.filter for part in keys]
                    yield DeleteVariant(name=name, filters=filters, keys=keys if kind == "equality" else ())
    if deletes.refresh:
        refresh = rows.refresh_deletes()
        if refresh is None:
            raise ConfigError(f"{rows.name} has no refresh deletes", path="deletes.refresh")
        yield DeleteVariant(name=REFRESH, filters=(refresh,))
