"""How rows are changed: the argument, else the table's property, else the specification's default."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icebench
from icebench.errors import Invalid, Unsupported

CHANGES: dict[str, Callable[..., object]] = {
    "delete": lambda table, **mode: table.delete("id = 2", **mode),
    "update": lambda table, **mode: table.update("id = 2", {"name": "new"}, **mode),
    "upsert": lambda table, **mode: table.upsert(pa.table({"id": [2], "name": ["new"]}), on=["id"], **mode),
}
PROPERTIES = {"delete": "write.delete.mode", "update": "write.update.mode", "upsert": "write.merge.mode"}


def changed(tmp_path: Path, verb: str, properties: dict[str, str], **mode: str) -> str:
    """The mode in which a change was made, from the files of the table that it left."""
    catalog = icebench.load_catalog(str(tmp_path))
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("name", pa.string())]), properties=properties)
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}))
    CHANGES[verb](table, **mode)
    expected = {1: "a", 3: "c"} if verb == "delete" else {1: "a", 2: "new", 3: "c"}
    rows = table.scan().to_arrow()
    assert dict(zip(rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True)) == expected
    return "merge-on-read" if table.inspect.delete_files().num_rows else "copy-on-write"


@pytest.mark.parametrize("verb", CHANGES)
class TestModes:
    @pytest.mark.parametrize("version", ["1", "2", "3"])
    def test_the_default_is_copy_on_write(self, tmp_path: Path, verb: str, version: str) -> None:
        assert changed(tmp_path, verb, {"format-version": version}) == "copy-on-write"

    def test_the_property_is_that_of_the_change(self, tmp_path: Path, verb: str) -> None:
        assert changed(tmp_path / "own", verb, {PROPERTIES[verb]: "merge-on-read"}) == "merge-on-read"
        others = dict.fromkeys(set(PROPERTIES.values()) - {PROPERTIES[verb]}, "merge-on-read")
        assert changed(tmp_path / "others", verb, others) == "copy-on-write"

    def test_the_argument_stands_above_the_property(self, tmp_path: Path, verb: str) -> None:
        own = {PROPERTIES[verb]: "merge-on-read"}
        assert changed(tmp_path / "a", verb, own, mode="copy-on-write") == "copy-on-write"
        assert changed(tmp_path / "b", verb, {}, mode="merge-on-read") == "merge-on-read"

    def test_wrong_modes_are_refused(self, tmp_path: Path, verb: str) -> None:
        with pytest.raises(Invalid, match="mode 'quick' is neither"):
            changed(tmp_path / "a", verb, {}, mode="quick")
        with pytest.raises(Invalid, match="mode '' is neither"):
            changed(tmp_path / "b", verb, {}, mode="")
        with pytest.raises(Invalid, match=PROPERTIES[verb]):
            changed(tmp_path / "c", verb, {PROPERTIES[verb]: "magic"})
        with pytest.raises(Unsupported, match="format version 1"):
            changed(tmp_path / "d", verb, {"format-version": "1", PROPERTIES[verb]: "merge-on-read"})
