from __future__ import annotations

import pytest

from icebench.engine.catalog.identifiers import dotted, namespace_identifier, table_identifier
from icebench.errors import Invalid


def test_names_are_tuples() -> None:
    assert table_identifier("db.events") == ("db", "events")
    assert table_identifier(("a", "b", "t")) == ("a", "b", "t")
    assert namespace_identifier("a.b") == ("a", "b")
    assert dotted(("a", "b", "t")) == "a.b.t"


@pytest.mark.parametrize("name", ["", "events", "db.", ".events", "db..events", "db.a/b", ("db", "a.b"), ("db", "..")])
def test_what_is_no_table_name(name: str | tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        table_identifier(name)


@pytest.mark.parametrize("name", ["", (), "a.", "a\\b", ("a", "b\0")])
def test_what_is_no_namespace(name: str | tuple[str, ...]) -> None:
    with pytest.raises(Invalid):
        namespace_identifier(name)
