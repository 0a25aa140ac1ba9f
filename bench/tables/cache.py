"""Generated tables on disk: made once, found again by what they were made of.

An entry is a directory named by the hash of everything that decides its content. Tables hold absolute paths, so an
entry is written where it stays, and a marker, renamed into place last, says that it is complete. A directory without a
marker, or with one from another place, is the rest of an interrupted build or of a moved checkout, and is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from icebench.bench.errors import DatasetFailed
from icebench.bench.file_lock import locked
from icebench.bench.setup_jars import ICEBERG_RUNTIME
from icebench.bench.truth.metadata import load_table_json

MARKER = "complete.json"
READERS = frozenset({"display.py", "frames", "inspect", "plan", "read", "scan.py", "spark", "spark_source"})
"""Rooms of the engine that only find and read rows: tables that are kept do not change with them."""
_SPARK_WRITERS = ("distribution.py", "frame_writer.py")
"""What of ``spark`` writes."""
_ENGINE = Path(__file__).resolve().parents[2] / "engine"


class DatasetCache:
    """Entries below one directory.

    Args:
        root: The directory; made when needed.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def find_or_build(
        self, name: str, key: Mapping[str, Any], build: Callable[[Path], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """What `build` gave, now or in an earlier run.

        Args:
            name: For people: the start of the directory's name.
            key: JSON values that decide the content, with the versions of the libraries that write files.
            build: Fills the empty directory that it is given, and gives JSON values that describe it.

        Raises:
            DatasetFailed: The disk refused.
            Exception: Whatever `build` raises; nothing of the entry is left, and the next call builds again.
        """
        key = {**key, "written with": _writers()}
        digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
        # Comet 1.2 takes paths for URIs, and leaves tables in a directory with a space to Spark.
        entry = self.root / f"{re.sub('[^A-Za-z0-9._-]+', '-', name)}-{digest}"
        try:
            with locked(entry):
                found = _read_marker(entry)
                if found is not None:
                    return found
                shutil.rmtree(entry, ignore_errors=True)
                entry.mkdir(parents=True)
                try:
                    described = dict(build(entry))
                    _write_marker(entry, {"key": dict(key), "location": str(entry), "content": described})
                except BaseException:
                    shutil.rmtree(entry, ignore_errors=True)  # on a full disk, the space is what the user needs first
                    raise
                return described
        except OSError as error:
            raise DatasetFailed(f"dataset {entry} cannot be written: {error}") from error


@cache
def _writers() -> dict[str, str]:
    """The versions of the libraries that write files."""
    return {"pyarrow": version("pyarrow"), "pyspark": version("pyspark"), "Iceberg Java": ICEBERG_RUNTIME}


def base_key(metadata_location: str) -> dict[str, str]:
    """What a table that refers to files of another one has of that in its key: where it is, and which build of it, by
    its UUID, as a table that is built again is at the same place, with other files."""
    return {"base": metadata_location, "build": load_table_json(metadata_location).values["table-uuid"]}


def source_digest(folders: Sequence[Path]) -> str:
    """A hash of all Python source below these directories (or of single files), for keys: another program makes other
    datasets. Raises FileNotFoundError for a path that has none: a program that moved must not go unnoticed."""
    digest = hashlib.sha256()
    for folder in folders:
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
        if not files:
            raise FileNotFoundError(folder)
        for path in files:
            digest.update(f"{path.relative_to(folder.parent)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def engine_writers(engine: Path = _ENGINE) -> tuple[Path, ...]:
    """All programs of an engine but for what only reads, for keys of tables that it writes: a list of those that write
    would lack the next one."""
    rooms = [room for room in sorted(engine.glob("*")) if room.suffix == ".py" or (room / "__init__.py").is_file()]
    return (
        *(room for room in rooms if room.name not in READERS),
        *(engine / "spark" / name for name in _SPARK_WRITERS),
    )


def _read_marker(entry: Path) -> dict[str, Any] | None:
    try:
        marker = json.loads((entry / MARKER).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    if marker["location"] != str(entry):
        return None
    content: dict[str, Any] = marker["content"]
    return content


def _write_marker(entry: Path, values: Mapping[str, Any]) -> None:
    temporary = entry / f"{MARKER}.part"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(values, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(entry / MARKER)
