"""Reads deletion vectors, grouped by Puffin file (spec: "Deletion Vectors"; Puffin spec: `deletion-vector-v1`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from pyroaring import BitMap64

from icebench.engine.codec.puffin.bitmap import decode_vector, encode_vector
from icebench.engine.deletes.cache import DeleteCache
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.positions import Positions
from icebench.engine.errors import CorruptTable, FileNotFound
from icebench.engine.runtime.counters import DELETE_FILES_LOADED, VECTORS_COALESCED, Counters
from icebench.engine.runtime.runner import Runner
from icebench.engine.storage.store import Store

_GAP_BYTES = 1 << 20
"""Vectors less than this apart are fetched by one request: reading the bytes between takes less than a round trip."""
_REQUEST_BYTES = 64 << 20


def load_vectors(
    vectors: Collection[DeleteFile],
    *,
    store: Store,
    runner: Runner,
    counters: Counters,
    rows: Mapping[DeleteFile, int],
    needed_by: str | None = None,
    cache: DeleteCache | None = None,
) -> Mapping[DeleteFile, Positions]:
    """Read deletion vectors, by one request for neighbours in a Puffin file.

    Args:
        vectors: The vectors.
        store: Where they are.
        runner: Reads in parallel.
        counters: Count them.
        rows: The number of rows of a vector's data file, if known.
        needed_by: For errors.
        cache: Keeps decoded vectors.

    Raises:
        FileNotFound: Naming the Puffin file and `needed_by`.
        CorruptTable: A vector without offset and size, with a wrong checksum, with another number of positions than its
            manifest entry states, or with a position beyond the rows of its data file.
    """
    found: dict[DeleteFile, Positions] = {}
    if cache is not None:
        found = {v: kept for v in vectors if (kept := cache.find(("vector", v))) is not None}
    missing = [vector for vector in vectors if vector not in found]
    stretches = _stretches(missing)

    def load(stretch: list[DeleteFile]) -> dict[DeleteFile, Positions]:
        start, end = _start(stretch[0]), max(_end(v) for v in stretch)
        try:
            data = store.read(stretch[0].file_path, start, end - start)
        except FileNotFound as error:
            raise FileNotFound(stretch[0].file_path, needed_by) from error
        return {v: _positions(v, data[_start(v) - start : _end(v) - start], rows.get(v)) for v in stretch}

    for loaded in runner.map(load, stretches):
        found.update(loaded)
        if cache is not None:
            for vector, positions in loaded.items():
                cache.keep(("vector", vector), positions, positions.nbytes)
    counters.add(DELETE_FILES_LOADED, len(missing))
    if len(stretches) < len(missing):
        counters.add(VECTORS_COALESCED, len(missing) - len(stretches))
    return found


def vector_blob(positions: Positions) -> bytes:
    """Encode the blob of a deletion vector with these positions."""
    return encode_vector(BitMap64(positions.astype(np.uint64)))


def _start(vector: DeleteFile) -> int:
    if vector.content_offset is None or vector.content_size_in_bytes is None or vector.referenced_data_file is None:
        raise CorruptTable("a deletion vector without offset, size or data file", location=vector.file_path)
    return vector.content_offset


def _end(vector: DeleteFile) -> int:
    return _start(vector) + (vector.content_size_in_bytes or 0)


def _stretches(vectors: Collection[DeleteFile]) -> list[list[DeleteFile]]:
    """Group vectors that one request fetches."""
    stretches: list[list[DeleteFile]] = []
    for vector in sorted(vectors, key=lambda v: (v.file_path, _start(v))):
        last = stretches[-1] if stretches else []
        near = (
            last
            and last[0].file_path == vector.file_path
            and _start(vector) - _end(last[-1]) < _GAP_BYTES
            and _end(vector) - _start(last[0]) <= _REQUEST_BYTES
        )
        if near:
            last.append(vector)
        else:
            stretches.append([vector])
    return stretches


def _positions(vector: DeleteFile, blob: bytes, rows: int | None) -> Positions:
    bitmap = decode_vector(blob, location=vector.file_path, cardinality=vector.record_count, rows=rows)
    # None is above 2**63 - 1, so the bits mean the same.
    return np.frombuffer(bitmap.to_array(), np.int64) if bitmap else np.empty(0, np.int64)
