"""No engine: the bytes of a table's data manifests, inflated by the fastest library on all processors.

It is the floor of planning from deflated manifests: whoever reads them must do this, and then decode, filter and match
besides. No manifest is skipped, so it is no floor for a filter that skips manifests.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import deflate
import fastavro

from icebench.bench.engines.checksum import Checksum
from icebench.bench.engines.engine import Ability, Plan, normalised

_PIECE_BYTES = 1 << 20
_SYNC_BYTES = 16


@dataclass(frozen=True)
class Block:
    """A deflated block: where its body is in the file, and how many bytes it inflates to."""

    offset: int
    length: int
    inflated: int


@dataclass(frozen=True)
class Piece:
    """Neighbouring blocks of a manifest, read at once."""

    path: Path
    blocks: tuple[Block, ...]

    def inflate(self) -> int:
        """Read and inflate them; gives the bytes that came out."""
        start = self.blocks[0].offset
        with self.path.open("rb") as file:
            file.seek(start)
            data = memoryview(file.read(self.blocks[-1].offset + self.blocks[-1].length - start))
        total = 0
        for block in self.blocks:
            at = block.offset - start
            total += len(deflate.deflate_decompress(data[at : at + block.length], block.inflated))
        return total


class Inflate:
    """libdeflate over the blocks of every data manifest of the current snapshot, read from local files. Which blocks
    there are, and how large they get, is found out by `open`."""

    name = "inflate"
    abilities: frozenset[Ability] = frozenset()

    def __init__(self) -> None:
        self.version = f"deflate {version('deflate')}"
        self._threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def open(self, metadata_location: str) -> list[Piece]:
        return [piece for path in _data_manifests(metadata_location) for piece in _pieces(path)]

    def compile(self, handle: list[Piece], filter: str | None) -> None:
        """Nothing to compile: all is inflated, whatever the filter."""

    def plan(self, handle: list[Piece], filter: None) -> Plan:
        with ThreadPoolExecutor(self._threads) as pool:
            total = sum(pool.map(Piece.inflate, handle))
        return Plan(tuple, lambda: {"bytes_inflated": total})

    def scan(self, handle: list[Piece], columns: Sequence[str], filter: None) -> None:
        raise AssertionError("scanning is not among the abilities")

    def checksum(self, handle: list[Piece], columns: Sequence[str], filter: None) -> Checksum:
        raise AssertionError("scanning is not among the abilities")


def _data_manifests(metadata_location: str) -> list[Path]:
    metadata = json.loads(Path(normalised(metadata_location)).read_bytes())
    snapshot = next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])
    listed: list[Any] = list(fastavro.reader(io.BytesIO(Path(normalised(snapshot["manifest-list"])).read_bytes())))
    return [Path(normalised(each["manifest_path"])) for each in listed if each["content"] == 0]


def _pieces(path: Path) -> Iterator[Piece]:
    gathered: list[Block] = []
    for block in _blocks(path.read_bytes()):
        gathered.append(block)
        if block.offset + block.length - gathered[0].offset >= _PIECE_BYTES:
            yield Piece(path, tuple(gathered))
            gathered = []
    if gathered:
        yield Piece(path, tuple(gathered))


def _blocks(data: bytes) -> Iterator[Block]:
    found: Iterable[Any] = fastavro.block_reader(io.BytesIO(data))
    for block in found:
        if block.codec != "deflate":
            raise ValueError(f"the manifest is compressed with {block.codec}, not deflate")
        # fastavro gives the block with its two leading numbers and its sync marker.
        body = _after_number(data, _after_number(data, block.offset))
        end = block.offset + block.size - _SYNC_BYTES
        yield Block(body, end - body, block.bytes_.getbuffer().nbytes)


def _after_number(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1
