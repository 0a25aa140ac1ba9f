"""Reads bombs in a process that may run out of memory: see `test_bombs`."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from icebench.engine.codec.avro.compiled.machine_kernels import DECODE_CHUNK, GATHER
from icebench.engine.codec.manifests.manifest_list import decode_manifest_list
from icebench.engine.codec.manifests.reader import decode_columns, decode_entries
from icebench.engine.codec.metadata_json.table import decode_metadata
from icebench.engine.codec.puffin.bitmap import decode_vector
from icebench.engine.codec.puffin.file import read_blob, read_footer
from icebench.engine.columnar.schemas import from_arrow_schema
from icebench.engine.formats.opening import open_source
from icebench.engine.formats.parquet.machine_kernels import LIST_CHUNKS, SLIM_FOOTER
from icebench.engine.spec.name_mapping import mapping_of
from icebench.engine.storage.memory import MemoryStore
from icebench.errors import EngineError
from tests.fault.bombs import BOMBS
from tests.fault.damage_reader import status

LOCATION = "memory://bomb"
_COLUMNS = from_arrow_schema(pa.schema([("a", pa.int64())]))


def _file(file_format: str) -> Callable[[bytes, Random], object]:
    def read(data: bytes, _: Random) -> object:
        store = MemoryStore()
        store.write(LOCATION, data)
        with open_source(store, LOCATION, file_format=file_format, name_mapping=mapping_of(_COLUMNS)) as source:
            return [source.read(group.index, _COLUMNS) for group in source.row_groups]

    return read


def _manifest(data: bytes, random: Random) -> object:
    with ThreadPoolExecutor(2) as pool:
        runs: Any = random.choice([map, pool.map])
        ways: list[Callable[[], object]] = [
            lambda: decode_columns(data, location=LOCATION, map_chunks=runs),
            lambda: decode_columns(data, location=LOCATION, metrics=[1, 2, 3], map_chunks=runs),
            lambda: decode_columns(data, location=LOCATION, metrics=None, map_chunks=runs),
            lambda: decode_entries(data, location=LOCATION, map_chunks=runs),
        ]
        return random.choice(ways)()


def _puffin(data: bytes, _: Random) -> object:
    return [read_blob(data, blob, location=LOCATION) for blob in read_footer(data, location=LOCATION).blobs]


READERS: dict[str, Callable[[bytes, Random], object]] = {
    "manifest": _manifest,
    "manifest_list": lambda data, _: decode_manifest_list(data, location=LOCATION),
    "metadata": lambda data, _: decode_metadata(data, location=LOCATION),
    "puffin": _puffin,
    "vector": lambda data, _: decode_vector(data, location=LOCATION),
    "avro": _file("avro"),
    "orc": _file("orc"),
    "parquet": _file("parquet"),
}


def warm_up() -> None:
    """Load what reads them."""
    assert LIST_CHUNKS.load()
    assert SLIM_FOOTER.load()
    DECODE_CHUNK.load()
    GATHER.load()


def run(job: dict[str, Any]) -> None:
    """Read one bomb; a line for what came of it on ``pipe``."""
    random = Random(f"{job['seed']}-{job['index']}")
    kind = list(BOMBS)[job["index"] % len(BOMBS)]
    data = BOMBS[kind](random)
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    started = time.process_time()
    detail = ""
    try:
        READERS[kind.split(maxsplit=1)[0]](data, random)
        came = "read"
    except EngineError as error:
        came, detail = type(error).__name__, str(error)
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        came, detail = type(error).__name__, traceback.format_exc()
    found = {
        "kind": kind,
        "bytes": len(data),
        "came": came,
        "detail": detail[-2000:],
        "seconds": round(time.process_time() - started, 2),
        "peak_bytes": max(0, status("VmHWM") - before),
    }
    Path(job["pipe"]).write_text(json.dumps(found))
