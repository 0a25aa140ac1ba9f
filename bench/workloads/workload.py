"""What all kinds of workloads have in common, and the kind of one table that exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from icebench.bench.definition import Definition
from icebench.bench.errors import ConfigError
from icebench.bench.workloads.gives import Gives
from icebench.engine.errors import without_secrets

if TYPE_CHECKING:
    from icebench.bench.workloads.events import Events
    from icebench.bench.workloads.refreshes import Refreshes
    from icebench.bench.workloads.rows import Rows

DEFAULT_SEED = 1


class Workload:
    """Base of all kinds of workloads. A new kind overrides the defaults that do not hold for it.

    Attributes:
        kind: Its name in definitions.
        name: Its name in cases.
        gives: What measurements receive.
    """

    kind: str
    name: str
    gives: ClassVar[Gives] = Gives.OTHER
    known_bytes: ClassVar[bool] = True
    """Whether `generated` determines how large its tables are, or no table is created."""

    @property
    def size(self) -> float:
        """Values of its rows, as a share of those of store_sales at scale 1; 1 where that is not known."""
        return 1.0

    @property
    def generated(self) -> Rows | Events | Refreshes | None:
        """What generates its rows; None if nothing does."""
        return None

    def tables_made(self, layouts: int) -> int:
        """How many tables are created for it in that many layouts, raw files included."""
        return 0

    @property
    def existing(self) -> tuple[TableWorkload, ...]:
        """Those of its tables that exist already."""
        return ()

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The content of files that it names, as JSON values: runs of other content are others.

        Raises:
            ConfigError: One cannot be read.
        """
        return {}

    def subjects(self) -> Iterator[object]:
        """What measurements receive. For rows and for existing tables, the run creates the subjects, one per layout."""
        yield self


@dataclass(frozen=True, kw_only=True)
class TableWorkload(Workload):
    """An existing table.

    Args:
        path: A metadata file or the table's directory; empty for what a catalog has now.
        relocate: Old prefixes -> new ones, for a table that was copied without rewriting its metadata.
        catalog: The catalog that supplies what opens the files: its address, or the name of its configuration. None for
            files that can be opened without.
        table: The name there.
        warehouse: Of an SQL catalog.
        catalog_name: Of one that shares an SQL database.
    """

    gives: ClassVar[Gives] = Gives.TABLE

    kind: str = "table"

    path: str
    relocate: Mapping[str, str] = field(default_factory=dict)
    catalog: str | None = None
    table: str = ""
    warehouse: str | None = None
    catalog_name: str | None = None
    name: str = "table"

    @property
    def existing(self) -> tuple[TableWorkload, ...]:
        return (self,)

    @classmethod
    def parse(cls, values: Definition) -> TableWorkload:
        given, relocate = values.keys(), values.texts("relocate")
        for pair in relocate.items():
            for prefix in pair:
                _refuse_secret(prefix, values.at("relocate"))
        if "catalog" not in given:
            files = values.text("path")
            _refuse_secret(files, values.at("path"))
            return cls(path=files, relocate=relocate)
        catalog, table = values.text("catalog"), values.text("table")
        path, warehouse, name = (
            values.text(key) if key in given else None for key in ("path", "warehouse", "catalog_name")
        )
        for key, text in (("catalog", catalog), ("path", path), ("warehouse", warehouse)):
            _refuse_secret(text or "", values.at(key))
        return cls(
            path=path or "",
            relocate=relocate,
            catalog=catalog,
            table=table,
            warehouse=warehouse,
            catalog_name=name,
        )


def _refuse_secret(text: str, path: str) -> None:
    """Raise ConfigError for an address with a password or key in it."""
    if without_secrets(text) != text:
        advice = "put it into .pyiceberg.yaml, or a variable such as PYICEBERG_CATALOG__NAME__URI, and give the name"
        raise ConfigError(f"the address has a secret, which a run's file would show; {advice}", path=path)
