"""How commands name a table: by its place, or by its name in a catalog."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import icebench
from icebench.bench.cli.completion import NAME_KEY, complete_catalog, complete_table
from icebench.bench.errors import ConfigError
from icebench.bench.report.profile import Place
from icebench.engine.errors import NotFound, NotInCatalog, without_secrets

_CATALOG = "The catalog that names it: an address, or a name of .pyiceberg.yaml or PYICEBERG_CATALOG__NAME__URI."
_NAME = "Which of the catalogs that share an SQL database."
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<table>.+)", re.DOTALL)
WORDS = "PLACE | CATALOG NAMESPACE.TABLE"


def catalog_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options --catalog and --warehouse of a command."""
    command = click.option("--warehouse", metavar="PLACE", help="The warehouse of an SQL catalog.")(command)
    return click.option("--catalog", metavar="CATALOG", help=_CATALOG, shell_complete=complete_catalog)(command)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a command that opens its table with `open_table`: --catalog-name, too, which no command sees."""
    named = click.option("--catalog-name", metavar="NAME", help=_NAME, expose_value=False, callback=_remember_name)
    return catalog_options(named(command))


def split_name(text: str) -> tuple[str, str]:
    """The name in queries and the table of ``NAME=TABLE``; of a table alone the name is empty."""
    named = _NAMED.fullmatch(text)
    return ("", text) if named is None else (named["name"], named["table"])


def table_argument(
    name: str = "words", metavar: str = WORDS, *, required: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The words that `open_table` takes, as an argument of a command."""
    return click.argument(name, metavar=metavar, nargs=-1, required=required, shell_complete=complete_table)


def split_catalog(words: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The catalog that comes before names of tables in it, and the names; None and all words where they are places."""
    if len(words) < 2 or split_name(words[0])[0]:
        return None, words
    _, second = split_name(words[1])
    is_name = "." in second and "/" not in second and not Path(second).exists()
    return (words[0], words[1:]) if is_name else (None, words)


def _remember_name(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
    context.meta[NAME_KEY] = value
    return value


def catalog_name() -> str | None:
    """What --catalog-name says."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(NAME_KEY)


def named_table(catalog: str, name: str, warehouse: str | None) -> tuple[icebench.Catalog, icebench.Table]:
    """The table of that name in a catalog: of an SQL database in the one that --catalog-name says, or its only one.

    Raises:
        ConfigError: The table is not in the database's catalog called "default", and there are others.
        EngineError: The table cannot be opened.
    """
    chosen = catalog_name()
    opened = icebench.load_catalog(catalog, warehouse=warehouse, name=chosen, init_catalog_tables="false")
    try:
        return opened, opened.load_table(name)
    except NotInCatalog as error:
        if chosen is not None:
            raise
        if len(error.catalogs) > 1:
            ways = " or ".join(f"--catalog-name {each}" for each in error.catalogs)
            raise ConfigError(f"{error}; say which: {ways}", path="CATALOG") from error
        (only,) = error.catalogs
    opened = icebench.load_catalog(catalog, warehouse=warehouse, name=only, init_catalog_tables="false")
    return opened, opened.load_table(name)


def open_table(
    words: tuple[str, ...], catalog: str | None, warehouse: str | None, *, commits: bool = False
) -> tuple[icebench.Table, Place]:
    """The table that a command's words name, and how to name it in other commands.

    Args:
        words: A catalog and a name in it; or one word: a name if `catalog` is given, else the place of a table.
        catalog: The option --catalog.
        warehouse: The option --warehouse.
        commits: Whether the command changes the table. By its place that is possible for the table of a directory
            catalog, whose files are the catalog.

    Raises:
        ConfigError: Too few or many words, --warehouse or --catalog-name without a catalog, a catalog in two ways; or
            the table would be changed without its catalog.
        EngineError: The table cannot be opened.
    """
    if not 1 <= len(words) <= 2:
        raise ConfigError(f"name one table: {WORDS}", path="TABLE")
    *before, name = words
    if catalog is not None and before:
        raise ConfigError(f"the catalog is {before[0]} already", path="--catalog")
    found = before[0] if before else catalog
    if found is None:
        for option, value in (("--warehouse", warehouse), ("--catalog-name", catalog_name())):
            if value is not None:
                raise ConfigError("is about a catalog, so give the TABLE, too", path=option)
        return _table_at(name, commits=commits)
    shown = without_secrets(found)
    options = [("--warehouse", warehouse), ("--catalog-name", catalog_name())]
    opened = (shown, name, *(word for option, value in options if value is not None for word in (option, value)))
    _, table = named_table(found, name, warehouse)
    is_name = found.isidentifier() and not Path(found).exists()
    return table, Place(table=name, spark_catalog=found if is_name else None, words=opened)


def _table_at(place: str, *, commits: bool) -> tuple[icebench.Table, Place]:
    try:
        table = icebench.load_table(place)
    except NotFound as error:
        if commits or Path(place).is_dir():  # of a catalog, perhaps
            raise ConfigError(f"{error}; of a catalog, give CATALOG NAMESPACE.TABLE", path=place) from error
        raise
    own, names = _version_of_directory(table, Path(place).resolve())
    if own is not None:
        return own if commits else table, Place(table=".".join(names), words=(place,))
    if commits:
        reason = "nothing is committed to a table that is opened by its files: give CATALOG NAMESPACE.TABLE"
        raise ConfigError(reason, path=place)
    return table, Place(opened=(place,))


def _version_of_directory(table: icebench.Table, directory: Path) -> tuple[icebench.Table | None, tuple[str, str]]:
    """The table as its directory catalog has it, and its name there; None if it is not one of a directory catalog.

    Its metadata files are numbered versions, and say that it is where it is. Those of other catalogs do not say which
    of them is the current one.
    """
    names = (directory.parent.name, directory.name)
    is_version = table.metadata_location.rpartition("/")[2].startswith("v")
    is_home = directory.is_dir() and table.location.removeprefix("file://").rstrip("/") == str(directory)
    is_name = all(name and "." not in name for name in names)
    if not (is_version and is_home and is_name):
        return None, names
    return icebench.load_catalog(str(directory.parent.parent)).load_table(names), names
