"""Plain, split and delta-encoded values (Parquet: "Encodings") as values of Arrow arrays, for compiled code.

Importing this module imports Numba.
"""

from __future__ import annotations

from engine.codec.parquet_header_kernels import read_varint
from engine.codec.parquet_intrinsics import (
    bytes_at,
    copy_bytes,
    int32s_at,
    load8,
    load32,
    load64,
    move4,
    move8,
    move16,
    shifted_right,
    store32,
    store64,
    store_pair,
    swap_bytes,
)
from engine.codec.parquet_layout import BAD_BIT_WIDTH, BAD_BLOCK, BIG_ENDIAN, SAME, TRUNCATED, Integers
from engine.codec.parquet_stream_kernels import load_part, ones


def look_up(indices: Integers, first: int, count: int, dictionary: int, out: int, width: int, out_width: int) -> None:
    """Values of checked indices; of a dictionary of narrower integers, extended."""
    if width == 4 and out_width == 16:
        for i in range(count):
            value = load32(dictionary + 4 * indices[first + i])
            store_pair(out + 16 * i, value, value >> 63)
    elif width == 8 and out_width == 16:
        for i in range(count):
            value = load64(dictionary + 8 * indices[first + i])
            store_pair(out + 16 * i, value, value >> 63)
    elif width == 4:
        for i in range(count):
            move4(out + 4 * i, dictionary + 4 * indices[first + i])
    elif width == 8:
        for i in range(count):
            move8(out + 8 * i, dictionary + 8 * indices[first + i])
    else:
        for i in range(count):
            move16(out + 16 * i, dictionary + 16 * indices[first + i])


def read_big_endian(position: int, width: int) -> int:
    """A number of 1 to 8 bytes."""
    value = load8(position)
    value = value - 256 if value > 127 else value
    for i in range(1, width):
        value = (value << 8) | load8(position + i)
    return value


def put_number(at: int, width: int, value: int) -> None:
    """A number as 4, 8 or 16 bytes."""
    if width == 4:
        store32(at, value)
    elif width == 8:
        store64(at, value)
    else:
        store_pair(at, value, value >> 63)


def convert_big_endian(source: int, end: int, width: int, count: int, out: int, out_width: int) -> None:
    """Numbers of 1 to 16 bytes, which all end by `end`, as numbers of 4, 8 or 16."""
    if width > 8:
        shift = 8 * (16 - width)
        for i in range(count):
            at = source + i * width
            store_pair(out + 16 * i, swap_bytes(load64(at + width - 8)), swap_bytes(load64(at)) >> shift)
        return
    # A load of eight bytes must not leave the page.
    safe = min(count, max(0, (end - 8 - source) // width + 1))
    shift = 64 - 8 * width
    if out_width == 16:
        for i in range(safe):
            value = swap_bytes(load64(source + i * width)) >> shift
            store_pair(out + 16 * i, value, value >> 63)
    elif out_width == 8:
        for i in range(safe):
            store64(out + 8 * i, swap_bytes(load64(source + i * width)) >> shift)
    else:
        for i in range(safe):
            store32(out + 4 * i, swap_bytes(load64(source + i * width)) >> shift)
    for i in range(safe, count):
        put_number(out + i * out_width, out_width, read_big_endian(source + i * width, width))


def convert(source: int, end: int, width: int, form: int, count: int, out: int, out_width: int) -> None:
    """Plain values, which all end by `end`, as values of the array."""
    if form == SAME:
        copy_bytes(out, source, count * width)
    elif form == BIG_ENDIAN:
        convert_big_endian(source, end, width, count, out, out_width)
    elif width == 4:
        for i in range(count):
            value = load32(source + 4 * i)
            store_pair(out + 16 * i, value, value >> 63)
    else:
        for i in range(count):
            value = load64(source + 8 * i)
            store_pair(out + 16 * i, value, value >> 63)


def join_streams(source: int, stride: int, width: int, count: int, out: int) -> None:
    """Values whose first bytes stand together, then their second bytes, and so on."""
    streams = bytes_at(source, stride * width)
    if width == 4:
        integers = int32s_at(out, count)
        for i in range(count):
            integers[i] = (
                streams[i]
                | (streams[stride + i] << 8)
                | (streams[2 * stride + i] << 16)
                | (streams[3 * stride + i] << 24)
            )
        return
    joined = bytes_at(out, count * width)
    for k in range(width):
        for i in range(count):
            joined[i * width + k] = streams[k * stride + i]


def read_signed(position: int, end: int) -> tuple[int, int]:
    """A signed number of 64 bits, and the position after it or an error code."""
    value, position = read_varint(position, end)
    return shifted_right(value, 1) ^ -(value & 1), position


def read_deltas(position: int, end: int, count: int, width: int, out: int) -> int:
    """Numbers that are stored as differences, 4 or 8 bytes each; an error code or 0."""
    block, position = read_varint(position, end)
    if position < 0:
        return position
    parts, position = read_varint(position, end)
    if position < 0:
        return position
    total, position = read_varint(position, end)
    if position < 0:
        return position
    value, position = read_signed(position, end)
    if position < 0:
        return position
    if block <= 0 or block & 127 or block > 1 << 30 or parts <= 0 or parts > block:
        return BAD_BLOCK
    part_values = block // parts
    if part_values * parts != block or part_values & 31:
        return BAD_BLOCK
    if total < count:
        return TRUNCATED
    if count > 0:
        put_number(out, width, value)
    done = 1
    while done < count:
        least, position = read_signed(position, end)
        if position < 0:
            return position
        widths = position
        position += parts
        if position > end:
            return TRUNCATED
        for part in range(parts):
            if done >= count:
                break
            bits = load8(widths + part)
            if bits > 8 * width:
                return BAD_BIT_WIDTH
            take = min(part_values, count - done)
            if (take * bits + 7) >> 3 > end - position:
                return TRUNCATED
            value = add_deltas(position, end, bits, least, value, take, out + width * done, width)
            position += (part_values * bits) >> 3
            done += take
    return 0


def add_deltas(position: int, end: int, bits: int, least: int, value: int, count: int, out: int, width: int) -> int:
    """Numbers from packed differences; the last of them."""
    cursor = position << 3
    mask = ones(bits)
    for i in range(count):
        at = cursor >> 3
        shift = cursor & 7
        delta = 0
        if bits:
            delta = shifted_right(load_part(at, end), shift)
            if shift + bits > 64:
                delta |= load8(at + 8) << (64 - shift)
        value += least + (delta & mask)
        put_number(out + width * i, width, value)
        cursor += bits
    return value
