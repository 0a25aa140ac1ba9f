"""What a shell completes of tables: places, catalogs, and the names of tables in them.

A shell asks by variables that click reads (``_ICEBENCH_COMPLETE``). Whatever goes wrong completes nothing: it is no
place for an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

import icebench
from icebench.engine.errors import NotInCatalog

NAME_KEY = "icebench.catalog_name"
"""Where the context of a command has the option --catalog-name."""
_METADATA = "metadata/"
_MOST_NAMESPACES = 20
"""Of more than that, the names of namespaces are completed first."""


def complete_table(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The next word of those that name a table: its place, or its catalog and then its name there."""
    words = _joined(context.params.get(parameter.name or "") or ())
    catalog = context.params.get("catalog")
    if catalog is None and not words:
        return complete_place(incomplete)
    if (catalog is None) == (len(words) == 1):
        return _items(table_names(context, words[0] if words else str(catalog), incomplete))
    return []


def complete_each_table(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A word that names a table by itself: its name if there is the option --catalog, else its place."""
    catalog = context.params.get("catalog")
    return places(incomplete) if catalog is None else _items(table_names(context, catalog, incomplete))


def complete_catalog(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A catalog: a name that is configured, or a directory."""
    return complete_place(incomplete)


def complete_place(incomplete: str, others: Iterable[CompletionItem] = ()) -> list[CompletionItem]:
    """The first word of those that name a table, or one of `others`, which begin with `incomplete`.

    A shell completes directories by itself where nothing else is offered, and only then.
    """
    found = [*others, *_items(name for name in _catalog_names() if name.startswith(incomplete))]
    return [*found, *_items(_directories(incomplete))] if found else places(incomplete)


def places(incomplete: str) -> list[CompletionItem]:
    """Directories; below the metadata of a table its files, too."""
    return [CompletionItem(incomplete, type="file" if _METADATA in incomplete else "dir")]


def table_names(context: click.Context, catalog: str, incomplete: str) -> Iterator[str]:
    """The full names of the tables of a catalog that begin with `incomplete`; none if it cannot be asked."""
    warehouse, name = context.params.get("warehouse"), context.meta.get(NAME_KEY)
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = icebench.load_catalog(catalog, warehouse=warehouse, name=name, init_catalog_tables="false")
        if not opened.list_namespaces() and name is None:
            opened = _only_catalog(opened, catalog, warehouse)
        yield from _names(opened, incomplete)


def _names(catalog: icebench.Catalog, incomplete: str) -> Iterator[str]:
    listed = catalog.list_namespaces()
    near = [each for each in listed if each.startswith(incomplete) or incomplete.startswith(f"{each}.")]
    if len(near) > _MOST_NAMESPACES:
        yield from (f"{each}." for each in near)
        return
    for namespace in near:
        yield from (name for name in catalog.list_tables(namespace) if name.startswith(incomplete))


def _only_catalog(opened: icebench.Catalog, catalog: str, warehouse: str | None) -> icebench.Catalog:
    """The only catalog of an SQL database, as a command opens it."""
    try:
        opened.load_table("no.table")
    except NotInCatalog as error:
        if len(error.catalogs) == 1:
            (only,) = error.catalogs
            return icebench.load_catalog(catalog, warehouse=warehouse, name=only, init_catalog_tables="false")
    return opened


def _catalog_names() -> Sequence[str]:
    with suppress(Exception):
        return icebench.catalog_names()
    return ()


def _directories(incomplete: str) -> Iterator[str]:
    before, slash, begin = incomplete.rpartition("/")
    with suppress(OSError):
        for path in sorted(Path(f"{before}{slash}" or ".").iterdir()):
            if path.name.startswith(begin) and path.is_dir() and (begin or not path.name.startswith(".")):
                yield f"{before}{slash}{path.name}/"


def _items(values: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(value) for value in values]


def _joined(words: Sequence[str]) -> list[str]:
    """Words as they were typed: bash divides ``sqlite:///c.db`` at its colon."""
    found: list[str] = []
    for word in words:
        if found and (word.startswith(":") or found[-1].endswith(":")):
            found[-1] += word
        else:
            found.append(word)
    return found
