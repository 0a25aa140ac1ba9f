"""`load_catalog` takes properties as keywords, as PyIceberg's does; what is mistyped is not taken for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import icebench
from icebench.errors import Invalid, Unsupported


def opened(address: str, **options: Any) -> icebench.Catalog:
    return icebench.load_catalog(address, **options)


@pytest.fixture(autouse=True)
def no_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_properties_are_keywords(tmp_path: Path) -> None:
    catalog = opened(f"sqlite:///{tmp_path}/c.db", warehouse="wh", **{"table-default.owner": "ann"})
    assert catalog.create_table("db.t", icebench.Schema(())).properties == {"owner": "ann"}
    both = opened(
        f"sqlite:///{tmp_path}/c.db",
        warehouse="wh",
        properties={"table-default.a": "1"},
        **{"table-default.b": "2", "table-default.c": None},
    )
    assert both.create_table("db.u", icebench.Schema(())).properties == {"a": "1", "b": "2"}


def test_a_catalog_is_named_and_described_as_for_pyiceberg(tmp_path: Path) -> None:
    catalog = opened("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    assert catalog.name == "lake"
    assert catalog.create_table("db.t", icebench.Schema(())).location == f"{tmp_path}/wh/db/t"
    opened("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", init_catalog_tables="true").close()
    with pytest.raises(Unsupported, match="type 'sqll'"):
        opened("lake", type="sqll", uri="sqlite://")


@pytest.mark.parametrize("name", ["warehose", "propertys", "s3", "Uri", "tokens", "_warehouse"])
def test_a_keyword_that_is_no_property_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(TypeError, match=f"load_catalog.* unexpected keyword argument '{name}'"):
        opened(str(tmp_path), **{name: "x"})


def test_properties_that_nothing_reads_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"s3\.endpont of a directory catalog: did you mean s3\.endpoint"):
        opened(str(tmp_path), **{"s3.endpont": "x"})
    with pytest.raises(Unsupported, match="oauth2-server-uri"):
        opened(str(tmp_path), **{"oauth2-server-uri": "https://x"})
    with pytest.raises(Unsupported, match="warehouse of a sql catalog: give it as the argument warehouse"):
        opened(f"sqlite:///{tmp_path}/c.db", properties={"warehouse": str(tmp_path)})


def test_words_that_one_kind_of_catalog_reads(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'scope'"):
        opened(str(tmp_path), scope="x")
    with pytest.raises(TypeError, match="'ugi'"):
        opened(f"sqlite:///{tmp_path}/c.db", ugi="ann:staff")


def test_what_is_given_twice_or_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"s3\.region is given twice"):
        opened(str(tmp_path), properties={"s3.region": "a"}, **{"s3.region": "b"})
    with pytest.raises(Invalid, match=r"s3\.secret-access-key is not a text") as caught:
        opened(str(tmp_path), **{"s3.secret-access-key": b"12345678"})
    assert "12345678" not in str(caught.value)
    with pytest.raises(Invalid, match="table-default"):
        opened(str(tmp_path), properties={"table-default.a": ["b"]})


def test_numbers_and_flags_become_texts(tmp_path: Path) -> None:
    given = {"table-default.write.target-file-size-bytes": 1_000_000, "s3.path-style-access": True}
    table = opened(str(tmp_path), properties=given).create_table("db.t", icebench.Schema(()))
    assert table.properties["write.target-file-size-bytes"] == "1000000"
    seconds: dict[str, Any] = {"s3.connect-timeout": 5}
    assert icebench.load_table(table.location, properties=seconds).name.endswith("t")
