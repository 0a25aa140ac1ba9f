"""Servers behind the catalogs of the contract tests: each is started once, when first asked for."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.services.rest_server import rest_server


@pytest.fixture(scope="session")
def _rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("rest")
    with rest_server(home) as address:
        yield address, home


@pytest.fixture
def rest_address(_rest_server: tuple[str, Path]) -> str:
    """The address of a REST catalog without tables, views and namespaces, that of Iceberg Java."""
    address, home = _rest_server
    # The server makes the same directory for the same name.
    shutil.rmtree(home / "warehouse", ignore_errors=True)
    with closing(sqlite3.connect(home / "catalog.db", timeout=30)) as connection, connection:
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            connection.execute(f"delete from {table}")
    return address


@pytest.fixture
def rest_database(rest_address: str, _rest_server: tuple[str, Path]) -> str:
    """The URL of the database that the server's JdbcCatalog, named `rest_backend`, keeps its tables in."""
    return f"sqlite:///{_rest_server[1] / 'catalog.db'}"
