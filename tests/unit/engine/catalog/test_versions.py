from __future__ import annotations

import pytest

from icebench.engine.catalog.versions import current_metadata_file, current_version, next_version, version_of
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import Invalid, NotFound, StorageFailed

T = "memory://t"


def store_with(*names: str, hint: str | None = None) -> MemoryStore:
    store = MemoryStore()
    for name in names:
        store.write(f"{T}/metadata/{name}", b"{}")
    if hint is not None:
        store.write(f"{T}/metadata/version-hint.text", hint.encode())
    return store


def numbered(last: int) -> list[str]:
    return [f"v{n}.metadata.json" for n in range(1, last + 1)]


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v3.metadata.json", 3),
        ("v12.gz.metadata.json", 12),
        ("v12.metadata.json.gz", 12),
        ("v.metadata.json", 0),
        ("00003-uuid.metadata.json", 0),
        ("v3.metadata.json.tmp", 0),
        (".v3.metadata.json.0123.tmp", 0),
        (f"v{'9' * 5000}.metadata.json", 0),
        ("v٣.metadata.json", 0),
    ],
)
def test_names(name: str, version: int) -> None:
    assert version_of(name) == version


@pytest.mark.parametrize("hint", ["3", "3\n", "2", "1", None, "9", "nonsense", "-1", "0", "", "9" * 5000])
def test_hints_may_be_stale_missing_or_wrong(hint: str | None) -> None:
    store = store_with(*numbered(3), hint=hint)
    assert current_version(f"{T}/metadata", store) == (3, f"{T}/metadata/v3.metadata.json")


def test_hints_that_cannot_be_read_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with(*numbered(3), hint="3")

    def read(location: str, offset: int = 0, length: int | None = None) -> bytes:
        raise StorageFailed(f"cannot read {location}")

    monkeypatch.setattr(store, "read", read)
    assert current_version(f"{T}/metadata", store) == (3, f"{T}/metadata/v3.metadata.json")


def test_old_versions_may_be_gone() -> None:
    store = store_with("v8.metadata.json", "v9.gz.metadata.json", hint="2")
    assert current_version(f"{T}/metadata", store) == (9, f"{T}/metadata/v9.gz.metadata.json")


def test_an_empty_directory() -> None:
    assert current_version(f"{T}/metadata", MemoryStore()) == (0, None)
    with pytest.raises(NotFound, match="no table at memory://t"):
        current_metadata_file(T, MemoryStore())


@pytest.mark.parametrize("location", [T, f"{T}/", f"{T}/metadata", f"{T}/metadata/"])
def test_a_directory_of_numbered_versions(location: str) -> None:
    assert current_metadata_file(location, store_with(*numbered(2))) == f"{T}/metadata/v2.metadata.json"


def test_a_directory_of_unique_names() -> None:
    store = store_with("00000-a.metadata.json", "00002-c.gz.metadata.json", "00001-b.metadata.json", "snap-1.avro")
    assert current_metadata_file(T, store) == f"{T}/metadata/00002-c.gz.metadata.json"


def test_a_metadata_file_is_itself() -> None:
    assert current_metadata_file(f"{T}/metadata/v1.metadata.json", MemoryStore()) == f"{T}/metadata/v1.metadata.json"


@pytest.mark.parametrize(
    "names",
    [
        ["00001-a.metadata.json", "00001-b.metadata.json"],
        ["v3.metadata.json", "00003-b.metadata.json"],
    ],
)
def test_several_candidates_are_named(names: list[str]) -> None:
    with pytest.raises(Invalid, match="ambiguous") as raised:
        current_metadata_file(T, store_with("00000-x.metadata.json", *names))
    for name in names:
        assert f"{T}/metadata/{name}" in str(raised.value)
    assert "00000-x" not in str(raised.value)


def test_files_below_other_directories_do_not_count() -> None:
    store = store_with("v1.metadata.json")
    store.write(f"{T}/metadata/old/v9.metadata.json", b"{}")
    assert current_version(f"{T}/metadata", store)[0] == 1


@pytest.mark.parametrize(
    ("location", "following"),
    [
        (None, 0),
        ("s3://b/1-2/00007-5b7d.metadata.json", 8),
        ("s3://b/1-2/v7.metadata.json", 0),
        (f"s3://b/{'9' * 5000}-5b7d.metadata.json", 0),
    ],
)
def test_the_version_after_a_file(location: str | None, following: int) -> None:
    assert next_version(location) == following
