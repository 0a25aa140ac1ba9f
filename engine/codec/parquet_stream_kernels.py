"""Definition levels and dictionary indices: numbers in runs (Parquet: "RLE / Bit-Packing Hybrid"), for compiled code.

Importing this module imports Numba. Each loop consumes a byte a turn or is bounded by the values that are asked for.
"""

from __future__ import annotations

from engine.codec.parquet_header_kernels import read_varint
from engine.codec.parquet_intrinsics import count_ones, load8, load64, lowest_one, shifted_right, store64
from engine.codec.parquet_layout import BAD_INDEX, BAD_LEVEL, TRUNCATED, Integers

# The state of a stream of dictionary indices.
AT = 0
END = 1
BITS = 2
LEFT = 3  # values of the run at hand
IS_PACKED = 4
RUN_VALUE = 5  # of a repeating run
CURSOR = 6  # of a packed run: address in bits
STATE = 8


def ones(count: int) -> int:
    """A word of so many ones from below, 0 to 64."""
    return -1 if count >= 64 else (1 << count) - 1


def put_bits(words: int, bit: int, word: int, count: int) -> None:
    """Put the lowest bits of a word, of which no higher one is set, into a bitmap that is zero there."""
    at = words + ((bit >> 6) << 3)
    shift = bit & 63
    store64(at, load64(at) | (word << shift))
    if shift + count > 64:
        store64(at + 8, load64(at + 8) | shifted_right(word, 64 - shift))


def put_ones(words: int, bit: int, count: int) -> None:
    """Put ones into a bitmap."""
    while count > 0:
        part = min(64 - (bit & 63), count)
        put_bits(words, bit, ones(part), part)
        bit += part
        count -= part


def bits_from(bitmap: int, bit: int) -> int:
    """64 bits of a bitmap, which goes on for 8 bytes after them."""
    at = bitmap + (bit >> 3)
    shift = bit & 7
    word = shifted_right(load64(at), shift)
    return word if shift == 0 else word | (load8(at + 8) << (64 - shift))


def load_part(position: int, end: int) -> int:
    """Up to 8 bytes from a position that is before the end, little-endian."""
    if position + 8 <= end:
        return load64(position)
    value = 0
    for i in range(end - position):
        value |= load8(position + i) << (8 * i)
    return value


def read_levels(position: int, end: int, count: int, words: int) -> int:
    """Definition levels of one bit each as a bitmap in zeroed words; how many are one, or an error code."""
    done = 0
    found = 0
    while done < count:
        header, position = read_varint(position, end)
        if position < 0:
            return position
        length = shifted_right(header, 1)
        if header & 1:
            if length > end - position:
                length = end - position
                if length < (count - done + 7) >> 3:
                    return TRUNCATED
            take = min(8 * length, count - done)
            for at in range(0, take, 64):
                part = min(64, take - at)
                word = load_part(position + (at >> 3), end) & ones(part)
                put_bits(words, done + at, word, part)
                found += count_ones(word)
            position += length
        else:
            if position >= end:
                return TRUNCATED
            level = load8(position)
            position += 1
            if level > 1:
                return BAD_LEVEL
            take = min(length, count - done)
            if level:
                put_ones(words, done, take)
                found += take
        done += take
    return found


def begin_run(state: Integers) -> int:
    """Read the head of the next run of indices; an error code or 0."""
    header, position = read_varint(state[AT], state[END])
    if position < 0:
        return position
    length = shifted_right(header, 1)
    if length > 0xFFFF_FFFF:
        return TRUNCATED
    room = state[END] - position
    if header & 1:
        state[IS_PACKED] = 1
        state[LEFT] = 8 * length
        state[CURSOR] = position << 3
        size = length * state[BITS]
        if size > room:
            # Groups of eight that some writer did not fill up.
            state[LEFT] = 8 * room // max(state[BITS], 1)
            size = room
        state[AT] = position + size
    else:
        size = (state[BITS] + 7) >> 3
        if size > room:
            return TRUNCATED
        value = 0
        for i in range(size):
            value |= load8(position + i) << (8 * i)
        state[IS_PACKED] = 0
        state[LEFT] = length
        state[RUN_VALUE] = value
        state[AT] = position + size
    return 0


def unpack(state: Integers, count: int, out: Integers, first: int) -> None:
    """The next indices of a packed run, which has as many, to `out` from `first` on."""
    bits = state[BITS]
    cursor = state[CURSOR]
    state[CURSOR] = cursor + count * bits
    if bits == 0:
        for i in range(count):
            out[first + i] = 0
        return
    mask = ones(bits)
    # A load of eight bytes must not leave the page.
    safe = min(count, max(0, (((state[END] - 8) << 3) - cursor) // bits + 1))
    # Eight indices take a whole number of bytes, so the shifts of the next eight are the same.
    at = cursor >> 3
    bit = cursor & 7
    bit1, bit2, bit3, bit4 = bit + bits, bit + 2 * bits, bit + 3 * bits, bit + 4 * bits
    bit5, bit6, bit7 = bit + 5 * bits, bit + 6 * bits, bit + 7 * bits
    for i in range(first, first + (safe & ~7), 8):
        out[i] = shifted_right(load64(at), bit) & mask
        out[i + 1] = shifted_right(load64(at + (bit1 >> 3)), bit1 & 7) & mask
        out[i + 2] = shifted_right(load64(at + (bit2 >> 3)), bit2 & 7) & mask
        out[i + 3] = shifted_right(load64(at + (bit3 >> 3)), bit3 & 7) & mask
        out[i + 4] = shifted_right(load64(at + (bit4 >> 3)), bit4 & 7) & mask
        out[i + 5] = shifted_right(load64(at + (bit5 >> 3)), bit5 & 7) & mask
        out[i + 6] = shifted_right(load64(at + (bit6 >> 3)), bit6 & 7) & mask
        out[i + 7] = shifted_right(load64(at + (bit7 >> 3)), bit7 & 7) & mask
        at += bits
    cursor += (safe & ~7) * bits
    for k in range(safe & ~7, safe):
        out[first + k] = shifted_right(load64(cursor >> 3), cursor & 7) & mask
        cursor += bits
    for k in range(safe, count):
        out[first + k] = shifted_right(load_part(cursor >> 3, state[END]), cursor & 7) & mask
        cursor += bits


def next_indices(state: Integers, count: int, out: Integers) -> int:
    """The next indices; an error code or 0."""
    done = 0
    while done < count:
        if state[LEFT] <= 0:
            failed = begin_run(state)
            if failed < 0:
                return failed
            continue
        take = min(state[LEFT], count - done)
        if state[IS_PACKED]:
            unpack(state, take, out, done)
        else:
            value = state[RUN_VALUE]
            for i in range(done, done + take):
                out[i] = value
        state[LEFT] -= take
        done += take
    return 0


def skip_indices(state: Integers, count: int) -> int:
    """Pass over indices; an error code or 0."""
    while count > 0:
        if state[LEFT] <= 0:
            failed = begin_run(state)
            if failed < 0:
                return failed
            continue
        take = min(state[LEFT], count)
        state[CURSOR] += take * state[BITS]
        state[LEFT] -= take
        count -= take
    return 0


def check_indices(indices: Integers, count: int, size: int) -> int:
    """An error code, or 0 if all indices are within a dictionary of this size."""
    most = 0
    for i in range(count):
        most = max(most, indices[i])
    return BAD_INDEX if count and most >= size else 0


def expand_indices(indices: Integers, words: int, start: int, count: int, out: Integers) -> None:
    """Indices of the values that a bitmap has, as indices of its rows from `start` on; those of nulls are any."""
    place = 0
    for at in range(0, count, 64):
        part = min(64, count - at)
        valid = load64(words + ((start + at) >> 3))
        for i in range(part):
            out[at + i] = indices[place]
            place += shifted_right(valid, i) & 1


def kept_bits(word: int, keep: int, count: int) -> int:
    """The bits of a word that are kept, of `count`, one after the other."""
    gaps = ~keep & ones(count)
    if count_ones(gaps) > 10:
        found = 0
        at = 0
        for i in range(count):
            is_kept = shifted_right(keep, i) & 1
            found |= (shifted_right(word, i) & is_kept) << at
            at += is_kept
        return found
    closed = 0
    while gaps:
        below = ones(lowest_one(gaps) - closed)
        word = (word & below) | (shifted_right(word, 1) & ~below)
        closed += 1
        gaps &= gaps - 1
    return word
