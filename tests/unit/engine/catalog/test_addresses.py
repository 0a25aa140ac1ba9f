"""Catalogs by their configured names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyiceberg.catalog
import pytest
import yaml
from pyiceberg.utils.config import Config

import icebench
from icebench.engine.catalog.addresses import is_name
from icebench.errors import EngineError, Invalid, StorageFailed, Unsupported
from tests.unit.bench.cli.test_main import exit_code

ROWS = pa.table({"id": [1, 2, 3]})


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    here = "http://127.0.0.1:9"
    catalogs = {
        "prod": {"type": "sql", "uri": f"sqlite:///{tmp_path}/prod.db", "warehouse": f"file://{tmp_path}/wh"},
        "local": {"type": "hadoop", "warehouse": f"{tmp_path}/directory"},
        "metastore": {"uri": "thrift://127.0.0.1:1"},
        "cloud": {"type": "dynamodb"},
        "lost": {"type": "rest"},
        "server": {"uri": here, "credential": "ann:hidden", "type": "rest"},
        "typo": {"uri": here, "tokken": "hidden"},
        "database": {"uri": "postgresql+psycopg://ann:hidden@127.0.0.1:9/db"},
    }
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": catalogs}))
    return tmp_path


@pytest.mark.interop
def test_one_file_opens_the_same_catalog_for_both(configured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = icebench.load_catalog("prod")
    assert ours.name == "prod"
    ours.create_table("db.t", ROWS.schema).append(ROWS)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    theirs = pyiceberg.catalog.load_catalog("prod")
    assert theirs.load_table("db.t").scan().to_arrow() == ROWS
    theirs.create_table("db.u", ROWS.schema).append(ROWS)
    assert icebench.load_catalog("PROD", name="prod").load_table("db.u").scan().to_arrow()["id"].to_pylist() == [
        1,
        2,
        3,
    ]
    theirs.engine.dispose()  # type: ignore[attr-defined]
    ours.close()


def test_arguments_stand_above_what_is_configured(configured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{configured}/other.db")
    icebench.load_catalog("prod", name="mine", warehouse=str(configured / "elsewhere")).create_table("a.t", ROWS.schema)
    assert (configured / "other.db").exists()
    assert not (configured / "prod.db").exists()
    assert (configured / "elsewhere" / "a" / "t").exists()
    given = {"uri": f"sqlite:///{configured}/third.db", "warehouse": str(configured)}
    assert icebench.load_catalog("unheard-of", properties=given).name == "unheard-of"
    assert (configured / "third.db").exists()


def test_a_directory_by_name(configured: Path) -> None:
    table = icebench.load_catalog("local").create_table("db.t", ROWS.schema)
    assert table.location == f"{configured}/directory/db/t"
    icebench.load_catalog("./local").create_table("db.u", ROWS.schema)
    assert (configured / "local" / "db" / "u").is_dir()


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("metastore", StorageFailed, "Hive metastore 127.0.0.1:1"),
        ("cloud", Unsupported, "'dynamodb'"),
        ("lost", Invalid, "no uri"),
        ("server", StorageFailed, "127.0.0.1:9"),
        ("typo", Unsupported, "tokken"),
        ("database", StorageFailed, "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_opened_reveals_no_secret(
    configured: Path, capsys: pytest.CaptureFixture[str], name: str, kind: type[EngineError], said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        icebench.load_catalog(name).load_table("db.t")
    assert "hidden" not in str(caught.value)
    assert exit_code("profile", "--catalog", name, "db.t") == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert "hidden" not in captured.err


@pytest.mark.parametrize("kind", ["hive", "glue"])
def test_commands_take_a_configured_metastore(
    tmp_path: Path,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"type": "hive", "uri": request.getfixturevalue("hive_uri")} if kind == "hive" else {}
    given = given or request.getfixturevalue("glue_properties")
    catalogs = {"metastore": {**given, "warehouse": f"file://{tmp_path}/wh"}}
    (tmp_path / ".pyiceberg.yaml").write_text(yaml.safe_dump({"catalog": catalogs}))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__METASTORE__TABLE_DEFAULT__OWNER", "ann")
    catalog = icebench.load_catalog("metastore")
    made = catalog.create_table("db.t", ROWS.schema)
    made.append(ROWS)
    assert made.metadata.properties["owner"] == "ann"
    assert made.location.removeprefix("file:").removeprefix("//") == f"{tmp_path}/wh/db.db/t"
    assert exit_code("profile", "--catalog", "metastore", "db.t") == 0
    with pytest.raises(Unsupported, match="views"):
        catalog.create_view("db.v", {"spark": "select 1"}, ROWS.schema)
    catalog.close()


def test_commands_take_a_configured_name(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    icebench.load_catalog("prod").create_table("db.t", ROWS.schema).append(ROWS)
    for command in (
        ["profile", "--catalog", "prod", "db.t"],
        ["profile", "prod", "db.t"],
        ["table", "snapshots", "--catalog", "prod", "db.t"],
        ["maintain", "rewrite-manifests", "--catalog", "prod", "db.t"],
        ["maintain", "expire-snapshots", "prod", "db.t"],
        ["run", "--catalog", "prod", "--table", "db.t", "--dry-run"],
    ):
        assert exit_code(*command) == 0, command
    capsys.readouterr()
    assert exit_code("maintain", "expire-snapshots", "--catalog", "prod", "local", "db.t") == 2
    assert exit_code("profile", "--catalog", "prod", "local", "db.t") == 2
    assert exit_code("run", "--catalog", "prod", "--dry-run") == 2
    assert exit_code("run", "--catalog", "prod", "--table", "db.missing", "--dry-run") == 2
    assert "db.missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "named"),
    [("prod", True), ("a-b", True), ("./prod", False), ("~", False), ("a/b", False), ("sqlite://", False), ("", False)],
)
def test_names(address: str, named: bool) -> None:
    assert is_name(address) == named
