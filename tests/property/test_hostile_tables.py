"""Tables that someone wrote to do harm: well-formed files with values that no writer gives. Whatever is asked of such a
table, the answer is a value or an error of the engine's own."""

from __future__ import annotations

import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import icebench
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list, encode_manifest_list
from icebench.engine.codec.manifests.manifest_writer import encode_manifest
from icebench.engine.codec.manifests.reader import decode_entries, decode_header
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile
from icebench.engine.spec.manifest import EntryStatus, ManifestEntry, ManifestFile
from icebench.errors import ContradictionWarning, EngineError, Invalid, RelocationWarning
from tests.fault.specimens import OPTIONS, SCHEMA, rows
from tests.property.test_codec_damage import places_of

RUNNER = LocalRunner(1)
HANG_SECONDS = 60
TABLES = {name: options for name, options in OPTIONS.items() if name in ("v1", "v2", "v3")}
TEXTS = st.sampled_from(
    ["", " ", "/", "//", "..", "../../x", "~nobody-here/x", "\x00", "/a\x00b", "x" * 5000, "9" * 5000, "file:",
     "file://host/x", "file:///nowhere", "/dev/zero", "/proc/self/mem", "/tmp", "PIPE", "s3://b//x", "s3://[/",
     "hdfs://nowhere:1/x", "viewfs:", "memory://x", "ftp://x", "http://127.0.0.1:1/", "geometry(" + " " * 2000,
     "geography(" + " " * 2000, "decimal(39, 0)", "decimal(9,10)", "fixed[999999999]", "fixed[-1]", "list",
     "unknown", "variant", "bucket[0]", "bucket[2147483648]", "truncate[" + "9" * 5000 + "]", "void", "%s", "null",
     "-1", "1e400", "{}", "\u202e", "append", "replace", "delete"]
)  # fmt: skip
NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 7, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
)
BYTES = st.sampled_from(
    [b"", b"\x00", b"\xff" * 8, b"\xff" * 100, b"\x00" * 17, b"\xed\xa0\x80", b"\x7f\xf8" + bytes(6)]
)


def nested_type(depth: int) -> Any:
    made: Any = "long"
    for i in range(depth):
        made = {"type": "list", "element-id": 1000 + i, "element": made, "element-required": False}
    return made


ODD = [1.5, [], {}, [[]], [{}], nested_type(300), nested_type(70)]
VALUES = st.one_of(TEXTS, NUMBERS, st.none(), st.booleans(), st.sampled_from(ODD))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of small tables on disk, and a named pipe that nobody writes to."""
    made = tmp_path_factory.mktemp("hostile")
    catalog = icebench.load_catalog(str(made / "wh"))
    for name, (properties, deletes) in TABLES.items():
        table = catalog.create_table(f"db.{name}", SCHEMA, partition_spec=[("part", "identity")], properties=properties)
        table.append(rows(0, 30))
        table.append(rows(30, 30))
        table.delete("id in (1, 4, 5, 40)", "merge-on-read" if deletes else "copy-on-write")
        if deletes:
            stream = table.keyed_stream(on=["id", "part"])
            stream.delete(rows(50, 3).select(["id", "part"]))
            stream.commit()
    os.mkfifo(made / "pipe")
    return made


@contextmanager
def no_hang() -> Iterator[None]:
    """Around what must end, on however busy a machine."""

    def stop(_: int, frame: FrameType | None) -> None:
        raise AssertionError(f"hangs at {frame}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def questions(table: icebench.Table) -> Iterator[Callable[[], object]]:
    """All that can be asked of a table that is only read."""
    yield lambda: table.scan(runner=RUNNER).to_arrow()
    yield lambda: table.scan(
        filter="id >= 20 and part = 1 and name is not null", columns=["id"], runner=RUNNER
    ).to_arrow()
    yield lambda: table.scan(columns=["_pos", "_file"], runner=RUNNER).to_arrow()
    yield lambda: table.scan(runner=RUNNER).count()
    yield lambda: table.scan(runner=RUNNER).plan().tasks(split_bytes=1 << 20)
    yield lambda: table.scan(as_of=1 << 60, runner=RUNNER).plan()
    yield lambda: table.incremental_append_scan(None).plan()
    yield lambda: table.changelog_scan(None).to_arrow()
    for name in (
        "snapshots",
        "history",
        "refs",
        "metadata_log_entries",
        "manifests",
        "all_manifests",
        "entries",
        "all_entries",
        "files",
        "all_files",
        "partitions",
        "position_deletes",
    ):
        yield getattr(table.inspect, name)
    yield table.maintenance.profile
    yield lambda: (table.schema, table.spec, table.sort_order, table.refs, table.location, table.current_snapshot)
    for ref in list(table.refs)[:3]:
        yield partial(count_of, table, ref)


def count_of(table: icebench.Table, ref: str) -> int:
    return table.scan(ref=ref, runner=RUNNER).count()


def ask(location: str, *, relocate: dict[str, str] | None = None) -> None:
    """Ask everything; only errors of the engine may come."""
    with no_hang(), warnings.catch_warnings():
        warnings.simplefilter("ignore", RelocationWarning)
        warnings.simplefilter("ignore", ContradictionWarning)
        try:
            table = icebench.load_table(location, relocate=relocate)
        except EngineError as error:
            check_message(error)
            return
        for question in questions(table):
            try:
                question()
            except EngineError as error:
                check_message(error)


def check_message(error: EngineError, allowed: str = "") -> None:
    """One line, and no longer than what was asked and 12,000 characters."""
    said = str(error)
    assert "\n" not in said
    assert len(said) < 12_000 + len(allowed), said[:300]


def state(home: Path, name: str) -> tuple[Path, dict[str, Any]]:
    directory = home / "wh" / "db" / name / "metadata"
    newest = max(directory.glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    return directory, json.loads(newest.read_text())


def written(home: Path, directory: Path, document: dict[str, Any]) -> str:
    text = json.dumps(document).replace('"PIPE"', json.dumps(str(home / "pipe")))
    path = directory / "hostile.metadata.json"
    path.write_text(text)
    return str(path)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(list(TABLES)))
def test_metadata_with_hostile_values(home: Path, data: st.DataObject, name: str) -> None:
    directory, document = state(home, name)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places_of(document))))
        holder: Any = document
        for key in path[:-1]:
            holder = holder[key]
        # A copy: the next value may be put into this one.
        holder[path[-1]] = deepcopy(data.draw(VALUES))
    ask(written(home, directory, document))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), name=st.sampled_from(list(TABLES)))
def test_snapshots_with_any_parents(home: Path, data: st.DataObject, name: str) -> None:
    directory, document = state(home, name)
    known = [snapshot["snapshot-id"] for snapshot in document["snapshots"]]
    for snapshot in document["snapshots"]:
        snapshot["parent-snapshot-id"] = data.draw(st.sampled_from([*known, 1]))
    ask(written(home, directory, document))


def hostile(value: Any, data: st.DataObject) -> Any:
    """Another value that the format has room for."""
    match value:
        case bool():
            return data.draw(st.booleans())
        case int():
            return type(value)(data.draw(st.integers(0, 1))) if type(value) is not int else data.draw(NUMBERS)
        case str():
            return data.draw(TEXTS)
        case bytes() | None:
            return data.draw(st.sampled_from([None, b""]) | BYTES) if value is not None else None
        case tuple() if all(type(each) is int for each in value):
            return tuple(data.draw(st.lists(NUMBERS, max_size=3)))
        case dict():
            return {key: hostile(inner, data) for key, inner in value.items()}
    return value


def changed(noun: Any, data: st.DataObject, kept: tuple[str, ...] = ()) -> Any:
    names = [f.name for f in fields(noun) if f.name not in kept]
    name = data.draw(st.sampled_from(names))
    return replace(noun, **{name: hostile(getattr(noun, name), data)})


def with_list(home: Path, name: str, change: Callable[[list[ManifestFile], Path], list[ManifestFile]]) -> str:
    """The table with another manifest list."""
    directory, document = state(home, name)
    snapshot = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    before = list(decode_manifest_list(Path(snapshot["manifest-list"]).read_bytes()))
    encoded = encode_manifest_list(
        change(before, directory),
        format_version=document["format-version"],
        snapshot_id=snapshot["snapshot-id"],
        sequence_number=snapshot.get("sequence-number", 0),
        first_row_id=snapshot.get("first-row-id"),
    )
    (directory / "hostile-list.avro").write_bytes(encoded)
    snapshot["manifest-list"] = str(directory / "hostile-list.avro")
    return written(home, directory, document)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(list(TABLES)))
def test_manifest_lists_with_hostile_values(home: Path, data: st.DataObject, name: str) -> None:
    def change(manifests: list[ManifestFile], _: Path) -> list[ManifestFile]:
        place = data.draw(st.integers(0, len(manifests) - 1))
        manifests[place] = changed(manifests[place], data)
        return manifests

    try:
        location = with_list(home, name, change)
    except (Invalid, UnicodeEncodeError, TypeError, AttributeError):
        return  # what cannot be written
    ask(location)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(list(TABLES)), is_listed=st.booleans())
def test_manifests_with_hostile_values(home: Path, data: st.DataObject, name: str, is_listed: bool) -> None:
    def change(manifests: list[ManifestFile], directory: Path) -> list[ManifestFile]:
        place = data.draw(st.integers(0, len(manifests) - 1))
        listed = manifests[place]
        original = Path(listed.manifest_path).read_bytes()
        entries = decode_entries(original)
        row = data.draw(st.integers(0, len(entries) - 1))
        file: DataFile = changed(entries[row].data_file, data, ("content", "file_format", "spec_id", "partition"))
        entries[row] = replace(entries[row], data_file=file)
        header = decode_header(original)
        encoded = encode_manifest(
            entries,
            schema=header.schema,
            spec=header.spec,
            format_version=header.format_version,
            content=listed.content,
            snapshot_id=listed.added_snapshot_id,
        ).data
        (directory / "hostile-manifest.avro").write_bytes(encoded)
        other = replace(listed, manifest_path=str(directory / "hostile-manifest.avro"), manifest_length=len(encoded))
        manifests[place] = replace(other, **counts(entries)) if is_listed else other
        return manifests

    try:
        location = with_list(home, name, change)
    except (Invalid, UnicodeEncodeError, OverflowError, TypeError, AttributeError):
        return  # what cannot be written
    ask(location)


def counts(entries: list[ManifestEntry]) -> dict[str, Any]:
    """What a manifest list says of a manifest of these entries."""
    made: dict[str, Any] = {}
    for status in EntryStatus:
        own = [entry for entry in entries if entry.status is status]
        made[f"{status.name.lower()}_files_count"] = len(own)
        made[f"{status.name.lower()}_rows_count"] = sum(entry.data_file.record_count for entry in own)
    return made


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(location=TEXTS, hint=TEXTS, name=st.sampled_from(list(TABLES)))
def test_places_that_are_none(home: Path, location: str, hint: str, name: str) -> None:
    place = str(home / "pipe") if location == "PIPE" else location
    ask(place)
    ask(str(home / "wh" / "db" / name), relocate={place: place})
    hinted = home / "hinted" / "metadata"
    hinted.mkdir(parents=True, exist_ok=True)
    (hinted / "version-hint.text").write_bytes(hint.encode("utf-8", "surrogatepass"))
    ask(str(home / "hinted"))
    if place.startswith(("s3", "http")):
        return
    for use in (icebench.load_catalog, lambda address: icebench.load_catalog("sqlite://", warehouse=address)):
        try:
            catalog = use(place)
            catalog.table_exists("db.x")
            if os.path.isdir(place):  # noqa: PTH112 - which raises nothing
                # Of the machine, with any number of files: these here are listed in its place.
                catalog.close()
                catalog = use(str(home))
            catalog.list_namespaces()
            catalog.close()
        except EngineError as error:
            check_message(error)


FILTERS = st.recursive(
    st.sampled_from(
        ["id = 1", "name = 'x'", "at > timestamp '2024-01-01'", "price < 1e400", "id = " + "9" * 5000, "id = x'00'",
         "part in (1, null)", "name like 'a%'", "tags is null", "ratio is nan", "(", "''", "--"]
    ),
    lambda inner: st.one_of(
        st.builds("not {}".format, inner),
        st.builds("({})".format, inner),
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
    ),
    max_leaves=5,
)  # fmt: skip


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=FILTERS | TEXTS,
    deep=st.sampled_from([1, 1, 300, 3000]),
    around=st.sampled_from(["({})", "not {}", "{} and id = 1"]),
)
def test_filters(home: Path, text: str, deep: int, around: str) -> None:
    if "{} and" in around:
        text = " and ".join([text] + ["id = 1"] * deep)
    else:
        left, right = around.split("{}")
        text = left * deep + text + right * deep
    table = icebench.load_table(str(home / "wh" / "db" / "v2"))
    try:
        table.scan(filter=text, runner=RUNNER).to_arrow()
    except EngineError as error:
        check_message(error, text)


def test_the_tables_are_good_before(home: Path) -> None:
    for name in TABLES:
        table = icebench.load_table(str(home / "wh" / "db" / name))
        for question in questions(table):
            question()
        assert pa.compute.sum(table.scan(columns=["id"], runner=RUNNER).to_arrow().column("id")).as_py() > 0
