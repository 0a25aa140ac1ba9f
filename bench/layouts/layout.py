"""What a layout is: how the rows of a workload are partitioned, ordered, divided into files and written.

A layout is a table ``[[layout]]`` of a definition, in the names that users of Iceberg know: transforms as the
specification writes them, and table properties. Only what has no property is a key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from icebench.bench.definition import Definition, one_of, typed
from icebench.bench.errors import ConfigError

FORMAT_VERSION = "format-version"
TARGET_SIZE = "write.target-file-size-bytes"
ROW_GROUP_SIZE = "write.parquet.row-group-size-bytes"
DISTRIBUTION = "write.distribution-mode"
CODEC = "write.parquet.compression-codec"
DELETE_MODE = "write.delete.mode"

_PLAIN = ("identity", "year", "month", "day", "hour")
_WITH_WIDTH = ("bucket", "truncate")
_TERM = re.compile(
    r"(?:(?P<transform>\w+)\s*\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<of>[\w.]+)\s*\)|(?P<column>[\w.]+))"
    r"(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Term:
    """A transform of a column, such as ``bucket(16, ss_item_sk)``, and in a sort order its direction.

    Args:
        column: Full name.
        transform: As the specification writes it, such as ``bucket[16]``.
        descending: The greatest first.
        nulls_last: After all values.
    """

    column: str
    transform: str = "identity"
    descending: bool = False
    nulls_last: bool = False

    @classmethod
    def parse(cls, text: str, path: str, *, ordered: bool) -> Term:
        """The term that a text writes; only an ordered one has a direction.

        Raises:
            ConfigError: It is none, or its transform is not known.
        """
        match = _TERM.fullmatch(text.strip())
        if match is None or (not ordered and (match["direction"] or match["nulls"])):
            example = "'ss_item_sk desc nulls last'" if ordered else "'month(ss_sold_date)' or 'bucket(16, ss_item_sk)'"
            raise ConfigError(f"{text!r} is not a term such as {example}", path=path)
        name = (match["transform"] or "identity").lower()
        one_of(name, (*_PLAIN, *_WITH_WIDTH), "transform", path)
        if (match["width"] is None) == (name in _WITH_WIDTH):
            needs = "needs a width" if name in _WITH_WIDTH else "takes no width"
            raise ConfigError(f"transform {name!r} {needs}, in {text!r}", path=path)
        descending = (match["direction"] or "").lower() == "desc"
        return cls(
            column=match["of"] or match["column"],
            transform=name if match["width"] is None else f"{name}[{int(match['width'])}]",
            descending=descending,
            nulls_last=descending if match["nulls"] is None else match["nulls"].lower() == "last",
        )


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One way to arrange the rows of a workload as a table.

    Args:
        name: Under which its figures are recorded.
        description: For people.
        partition: Terms of the partition spec.
        sort: Terms of the sort order, by which files and the rows in them are ordered within each partition.
        zorder: Columns along whose Z-order rows are arranged instead.
        hilbert: Columns along whose Hilbert curve rows are arranged instead.
        files: About how many data files; a partition has at least one. None leaves it to the target size.
        file_index: Columns that get a file index each.
        cluster_manifests: Whether manifests are rewritten by partition.
        properties: Table properties, verbatim.
    """

    name: str
    description: str = ""
    partition: tuple[Term, ...] = ()
    sort: tuple[Term, ...] = ()
    zorder: tuple[str, ...] = ()
    hilbert: tuple[str, ...] = ()
    files: int | None = None
    file_index: tuple[str, ...] = ()
    cluster_manifests: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, values: Definition) -> Layout:
        """The layout that a table of a definition says.

        Raises:
            ConfigError: A key, type or value is wrong.
        """
        layout = cls(
            name=values.text("name"),
            description=values.text("description", "no description"),
            partition=_terms(values, "partition", ordered=False),
            sort=_terms(values, "sort", ordered=True),
            zorder=_names(values, "zorder"),
            hilbert=_names(values, "hilbert"),
            files=values.whole("files", 0, least=0) or None,
            file_index=_names(values, "file_index"),
            cluster_manifests=values.flag("cluster_manifests", default=False),
            properties=values.properties("properties"),
        )
        values.done()
        orders = [key for key in ("sort", "zorder", "hilbert") if getattr(layout, key)]
        if len(orders) > 1:
            raise ConfigError(f"rows have one order: {' or '.join(orders)}", path=values.at(orders[1]))
        if layout.files is not None and TARGET_SIZE in layout.properties:
            raise ConfigError(f"say files or the property {TARGET_SIZE}, not both", path=values.at("files"))
        return layout

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it names, by key."""
        return (
            *(term.column for term in (*self.partition, *self.sort)),
            *self.zorder,
            *self.hilbert,
            *self.file_index,
        )

    @property
    def curve(self) -> tuple[str, ...]:
        """The columns of the curve that rows are along, if any."""
        return self.zorder or self.hilbert

    @property
    def curve_arguments(self) -> dict[str, Any]:
        """Arguments of `rewrite_data_files` that put rows along the curve; empty without one."""
        if self.zorder:
            return {"strategy": "zorder", "zorder_by": self.zorder}
        return {"strategy": "hilbert", "hilbert_by": self.hilbert} if self.hilbert else {}

    def check(self, columns: Collection[str], path: str) -> None:
        """Reject columns that the rows do not have.

        Raises:
            ConfigError: The message lists the known columns, and the nearest.
        """
        for column in self.columns:
            one_of(column, columns, f"column of layout {self.name}:", path)


def _terms(values: Definition, key: str, *, ordered: bool) -> tuple[Term, ...]:
    return tuple(
        Term.parse(typed(value, str, "a string", path), path, ordered=ordered) for path, value in values.items(key, [])
    )


def _names(values: Definition, key: str) -> tuple[str, ...]:
    found: list[str] = []
    for path, value in values.items(key, []):
        column = typed(value, str, "a column's name", path)
        if column in found:
            raise ConfigError(f"column {column!r} is listed twice", path=path)
        found.append(column)
    return tuple(found)
