import zipfile
from pathlib import Path

import pytest

from icebench.bench import setup_jars
from icebench.bench.setup_jars import cached_jar, is_cached

COORDINATES = "org.example:thing_2.13:1.0"


def test_the_path_is_that_of_sparks_resolver(tmp_path: Path) -> None:
    assert cached_jar(COORDINATES, tmp_path) == tmp_path / "jars" / "org.example_thing_2.13-1.0.jar"


def test_an_interrupted_download_is_not_cached(tmp_path: Path) -> None:
    jar = cached_jar(COORDINATES, tmp_path)
    assert not is_cached(COORDINATES, tmp_path)
    jar.parent.mkdir()
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n" * 100)
    assert is_cached(COORDINATES, tmp_path)
    jar.write_bytes(jar.read_bytes()[:-40])
    assert not is_cached(COORDINATES, tmp_path)


def test_a_cached_jar_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(coordinates: str) -> None:
        pytest.fail(f"fetched {coordinates}, which is there")

    monkeypatch.setattr(setup_jars, "is_cached", lambda _: True)
    monkeypatch.setattr(setup_jars, "fetch", unwanted)
    setup_jars.main()
