"""Theta sketches, from which the number of distinct values is estimated (Puffin blob ``apache-datasketches-theta-v1``).

A sketch keeps the least of the 63-bit hashes of all values: those below `theta`. As many of all possible hashes lie
below theta as of the values', so the number of values is the number of kept hashes over theta's share of the range.

The encoding is that of a "compact" sketch of Apache DataSketches, little-endian: how many 8-byte words come before the
hashes, version 3, family 3, two unused bytes, flags, a hash of the seed; then, unless there is no hash or one, their
number and an unused float; then theta, unless the sketch is exact.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from icebench.engine.errors import CorruptTable, Unsupported

THETA_SKETCH = "apache-datasketches-theta-v1"
NDV = "ndv"
"""The blob property with the estimate."""
SEED = 9001
"""The default seed of DataSketches, with which values are hashed."""
NOMINAL_ENTRIES = 4096
"""Hashes that a sketch keeps at most: the default of DataSketches. The standard error is 1/64 of the number."""

Hashes = npt.NDArray[np.uint64]

_EXACT = (1 << 63) - 1
_SEED_HASH = 0x93CC
_VERSION, _COMPACT_FAMILY = 3, 3
_BIG_ENDIAN, _READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 1, 2, 4, 8, 16, 32
_HEAD = struct.Struct("<BBBBBBH")
_COUNT = struct.Struct("<if")


@dataclass(frozen=True, slots=True)
class ThetaSketch:
    """A sketch of a set of values.

    Args:
        hashes: In ascending order, each above 0 and below theta.
        theta: 2**63 - 1 while all hashes are kept.
    """

    hashes: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    theta: int = _EXACT

    @property
    def estimate(self) -> int:
        """About how many distinct values there are; exact up to `NOMINAL_ENTRIES`."""
        return int(len(self.hashes) * (2.0**63 / self.theta))

    def joined(self, other: ThetaSketch) -> ThetaSketch:
        """The sketch of the values of both."""
        theta = min(self.theta, other.theta)
        both = np.concatenate([self.hashes, other.hashes[other.hashes < theta]])
        kept = np.unique(both)
        kept = kept[: np.searchsorted(kept, np.uint64(theta))]
        if len(kept) > NOMINAL_ENTRIES:
            theta, kept = int(kept[NOMINAL_ENTRIES]), kept[:NOMINAL_ENTRIES]
        return ThetaSketch(kept, theta)

    def with_values(self, hashes: Hashes) -> ThetaSketch:
        """The sketch with further values, of which these are the 64-bit hashes."""
        sketch, own = self, hashes >> np.uint64(1)
        # After the first step few of the others are below theta.
        for start in range(0, len(own), 16 * NOMINAL_ENTRIES):
            step = own[start : start + 16 * NOMINAL_ENTRIES]
            sketch = sketch.joined(ThetaSketch(step[step > 0]))
        return sketch


def encode_theta(sketch: ThetaSketch) -> bytes:
    """The blob's content."""
    count = len(sketch.hashes)
    flags = _READ_ONLY | _COMPACT | _ORDERED
    if sketch.theta != _EXACT:
        return _header(3, flags, count) + struct.pack("<q", sketch.theta) + sketch.hashes.tobytes()
    if count > 1:
        return _header(2, flags, count) + sketch.hashes.tobytes()
    return _header(1, flags | (_SINGLE if count else _EMPTY), None) + sketch.hashes.tobytes()


def _header(words: int, flags: int, count: int | None) -> bytes:
    # An empty sketch is that of any seed.
    head = _HEAD.pack(words, _VERSION, _COMPACT_FAMILY, 0, 0, flags, 0 if flags & _EMPTY else _SEED_HASH)
    return head if count is None else head + _COUNT.pack(count, 1.0)


def decode_theta(data: bytes, *, location: str | None = None) -> ThetaSketch:
    """Decode a blob's content.

    Raises:
        CorruptTable: The bytes are not a sketch.
        Unsupported: A sketch that is not compact, or of another seed or version.
    """

    def refuse(what: str) -> CorruptTable:
        return CorruptTable(what, location=location, path="theta sketch")

    if len(data) < _HEAD.size:
        raise refuse(f"{len(data)} bytes are no sketch")
    words, version, family, _, _, flags, seed = _HEAD.unpack_from(data)
    words &= 0x3F
    if (version, family) != (_VERSION, _COMPACT_FAMILY) or flags & _BIG_ENDIAN:
        raise Unsupported(f"a theta sketch of version {version}, family {family}, flags {flags:#x}")
    if flags & _EMPTY:
        return ThetaSketch()
    if seed != _SEED_HASH:
        raise Unsupported("a theta sketch of another seed")
    if words not in (1, 2, 3) or len(data) < 8 * words:
        raise refuse(f"{words} words before the hashes, in {len(data)} bytes")
    count = 1 if words == 1 else _COUNT.unpack_from(data, 8)[0]
    theta = struct.unpack_from("<q", data, 16)[0] if words == 3 else _EXACT
    if count < 0 or len(data) < 8 * (words + count):
        raise refuse(f"{count} hashes in {len(data)} bytes")
    hashes = np.unique(np.frombuffer(data, "<u8", count, 8 * words).astype(np.uint64))
    if theta <= 0 or len(hashes) != count or (count and not 0 < hashes[0] <= hashes[-1] < theta):
        raise refuse("hashes that are equal, 0 or not below theta")
    return ThetaSketch(hashes, theta)
