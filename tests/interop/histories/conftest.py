"""Catalogs that all engines share, made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop.histories.places import Place, directory_place, rest_place, sql_place
from tests.services.rest_server import rest_server


@pytest.fixture(scope="session")
def place_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    """The catalog of a kind (sql, rest, directory); each is made when it is first asked for."""
    places: dict[str, Place] = {}
    with ExitStack() as stack:

        def made(kind: str, home: Path) -> Place:
            if kind == "sql":
                return sql_place(spark, home)
            if kind == "directory":
                return directory_place(spark, home)
            return rest_place(spark, stack.enter_context(rest_server(home)))

        def place(kind: str) -> Place:
            if kind not in places:
                places[kind] = made(kind, tmp_path_factory.mktemp(kind))
                stack.callback(places[kind].close)
            return places[kind]

        yield place
