"""Catalogs as PyIceberg's users have configured them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.utils.config import Config

from icebench.engine.storage.user_configuration import FILE, configured_catalogs
from icebench.errors import Invalid

CONFIGURED = """\
default-catalog: prod
catalog:
  PROD:
    uri: http://127.0.0.1:1/
    S3.region: eu-west-1
    ssl:
      cabundle: /ca.pem
      client: {cert: /c.pem, key: /k.pem}
  dev:
    warehouse: 007
"""


def test_files_are_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in ("own", "home", "here")]
    for folder in folders:
        folder.mkdir()
        (folder / FILE).write_text(f"catalog:\n  prod:\n    uri: {folder.name}\n")
    monkeypatch.chdir(folders[2])
    monkeypatch.setenv("HOME", str(folders[1]))
    environment = {"PYICEBERG_HOME": str(folders[0])}
    for folder in folders:
        assert configured_catalogs(environment) == {"prod": {"uri": folder.name}}
        (folder / FILE).unlink()
    assert configured_catalogs(environment) == {}


def test_what_a_file_and_variables_say(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(CONFIGURED)
    variables = {"PYICEBERG_CATALOG__PROD__S3__REGION": "here", "Pyiceberg_Catalog__Third_One__uri": "u"}
    assert configured_catalogs({"PYICEBERG_HOME": str(tmp_path), **variables}) == {
        "prod": {
            "uri": "http://127.0.0.1:1/",
            "s3.region": "here",
            "ssl.cabundle": "/ca.pem",
            "ssl.client.cert": "/c.pem",
            "ssl.client.key": "/k.pem",
        },
        "dev": {"warehouse": "007"},
        "third-one": {"uri": "u"},
    }


_WORDS = st.text("abC_-", min_size=1, max_size=4).filter(lambda text: "__" not in text and text.strip("_") == text)
_KEYS = st.lists(_WORDS, min_size=1, max_size=3)


@pytest.mark.interop
@given(
    st.dictionaries(st.tuples(_WORDS, _WORDS), st.text("xyz1", min_size=1, max_size=3), max_size=4),
    st.lists(st.tuples(_WORDS, _KEYS, st.text("xyz1", min_size=1, max_size=3)), max_size=4),
)
def test_pyiceberg_agrees(
    tmp_path_factory: pytest.TempPathFactory,
    written: dict[tuple[str, str], str],
    variables: list[tuple[str, list[str], str]],
) -> None:
    folder = tmp_path_factory.mktemp("home")
    catalogs: dict[str, dict[str, str]] = {}
    for (catalog, key), value in written.items():
        catalogs.setdefault(catalog.lower(), {})[key.lower()] = value
    if catalogs:
        (folder / FILE).write_text(yaml.safe_dump({"catalog": catalogs}))
    environment = {f"PYICEBERG_CATALOG__{name}__{'__'.join(keys)}".upper(): value for name, keys, value in variables}
    environment |= {"PYICEBERG_HOME": str(folder), "HOME": str(folder)}
    ours = configured_catalogs(environment)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        theirs = Config()
    assert set(ours) == set(theirs.get_known_catalogs())
    for name, properties in ours.items():
        assert properties == theirs.get_catalog_config(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("catalog:\n  a:\n   token: hidden\n  token: 'hidden\n", "line 5: not YAML"),
        ("- hidden", "first level"),
        ("catalog: hidden", "properties"),
        ("catalog:\n  prod: hidden", "properties"),
    ],
)
def test_a_damaged_file_reveals_no_secret(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(Invalid, match=said) as caught:
        configured_catalogs({"PYICEBERG_HOME": str(tmp_path)})
    assert "hidden" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
