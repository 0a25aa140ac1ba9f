"""No catalog property is silently ignored."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.engine.catalog import properties as rules
from icebench.engine.catalog.glue import GLUE_PROPERTIES
from icebench.engine.catalog.hive import HIVE_PROPERTIES
from icebench.engine.catalog.properties import INIT_TABLES, TABLE_DEFAULT, TABLE_OVERRIDE, check_properties
from icebench.engine.catalog.rest import REST_PROPERTIES
from icebench.engine.storage.object_stores import STORAGE_PROPERTIES
from icebench.errors import IgnoredPropertyWarning, Unsupported
from tests.tidy.source import REPOSITORY

_PAGE = "docs/guide/catalogs.md"
_MODULES = ("io", "catalog", "catalog.rest", "catalog.rest.auth", "catalog.glue", "catalog.dynamodb")
_NAME = re.compile(r"[a-z][a-z0-9]*([.-][a-z0-9-]+)+")
_NO_PROPERTIES = {
    "vended-credentials",
    "namespace-identifier",
    "table-name",
    "iceberg.field.id",
    "iceberg.field.optional",
    "iceberg.field.current",
    "auth.manager",
}


def names_of_pyiceberg() -> list[str]:
    modules = [importlib.import_module(f"pyiceberg.{name}") for name in _MODULES]
    texts = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    return sorted(name for name in texts if _NAME.fullmatch(name) and name not in _NO_PROPERTIES)


@pytest.mark.interop
def test_each_name_of_pyiceberg_is_read_or_warned_of_or_refused() -> None:
    found: dict[str, set[str]] = {"read": set(), "warned of": set(), "refused": set()}
    for name in names_of_pyiceberg():
        kind, said = "read", name
        try:
            check_properties({name: "hidden"}, REST_PROPERTIES, subject="a rest catalog")
        except Unsupported as refused:
            kind, said = "refused", str(refused)
        except IgnoredPropertyWarning as warned:
            kind, said = "warned of", str(warned)
        found[kind].add(name)
        assert name in said
        assert "hidden" not in said
    assert found["read"] <= {*REST_PROPERTIES, *STORAGE_PROPERTIES}
    assert {"s3.region", "s3.signer", "gcs.project-id", "adls.account-key"} <= found["read"]
    assert {"glue.id", "adls.anon"} <= found["refused"]
    assert {"py-io-impl", "gcs.consistency"} <= found["warned of"]


def test_each_name_that_a_rest_catalog_is_said_to_read_is_in_its_code() -> None:
    texts: list[str] = []
    for path in (REPOSITORY / "engine/catalog").glob("rest*.py"):
        tree = ast.parse(path.read_text())
        listed = {
            id(each)
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SESSION_PROPERTIES"
            for each in ast.walk(node)
        }
        constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in listed)
        texts += [node.value for node in constants if isinstance(node.value, str)]
    assert not [name for name in REST_PROPERTIES if name not in texts]


def test_the_guide_lists_every_name() -> None:
    documented = set(re.findall(r"`([^`\n]+)`", (REPOSITORY / _PAGE).read_text()))
    every = {
        *REST_PROPERTIES,
        *HIVE_PROPERTIES,
        *GLUE_PROPERTIES,
        *STORAGE_PROPERTIES,
        *rules._TUNING,
        INIT_TABLES,
        TABLE_DEFAULT,
        TABLE_OVERRIDE,
    }
    assert not sorted(name for name in every if name not in documented)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("s3.sse.type", "kms", "s3.sse.type"),
        ("s3.endpont", "x", "did you mean s3.endpoint"),
        ("token", "hidden", "token of a"),
        ("s3.delete-enabled", "false", "s3.delete-enabled"),
        ("colour", "red", "nothing reads it"),
    ],
)
def test_what_nobody_reads_is_refused(tmp_path: Path, name: str, value: str, said: str) -> None:
    for address in (str(tmp_path), f"sqlite:///{tmp_path}/c.db"):
        with pytest.raises(Unsupported, match=said) as caught:
            icebench.load_catalog(address, properties={name: value})
        assert "hidden" not in str(caught.value)
    with pytest.raises(Unsupported, match=said):
        icebench.load_table(str(tmp_path), properties={name: value})


def test_what_changes_nothing_passes(tmp_path: Path) -> None:
    icebench.load_catalog(str(tmp_path), properties={"s3.sse.type": "none", "s3.delete-enabled": "TRUE"})
    with pytest.warns(IgnoredPropertyWarning, match="cache-enabled"):
        icebench.load_catalog(str(tmp_path), properties={"cache-enabled": "true"})


def test_properties_of_new_tables(tmp_path: Path) -> None:
    given = {"table-default.owner": "ann", "table-default.tier": "1", "table-override.format-version": "3"}
    catalog = icebench.load_catalog(str(tmp_path), properties=given)
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"tier": "2"})
    assert table.metadata.properties == {"owner": "ann", "tier": "2"}
    assert table.metadata.format_version == 3
