"""Pages of Parquet column chunks, decoded by compiled code into the memory of Arrow arrays.

Importing this module imports Numba. Nothing here trusts the input: counts, widths and indices are checked before they
are used, no read leaves what it is told of, each loop consumes a byte a turn or is bounded by the page's values.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.codec.parquet_intrinsics import (
    count_ones,
    int64s_at,
    load8,
    load32,
    load64,
    lowest_one,
    move4,
    move8,
    move16,
    shifted_right,
    store64,
    uint32s_at,
)
from engine.codec.parquet_layout import (
    BAD_BIT_WIDTH,
    BAD_STREAM,
    BLOCK,
    BLOCK_SCRATCH,
    BYTE_STREAM_SPLIT,
    DECODE_LENGTH,
    DELTA_BINARY_PACKED,
    DICTIONARY_AT,
    DICTIONARY_VALUES,
    DICTIONARY_WIDTH,
    ENCODING,
    FORM,
    KEEP_AT,
    KEEP_ROW,
    LEVELS,
    LEVELS_AT,
    LEVELS_BEFORE_VALUES,
    LEVELS_SIZE,
    NO_LEVELS,
    NO_ROOM,
    NULLS,
    OUT_AT,
    OUT_ROW,
    OUT_ROWS,
    OUT_WIDTH,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    SCRATCH_AT,
    SCRATCH_SIZE,
    TRUNCATED,
    UNKNOWN,
    VALIDITY_AT,
    VALUES,
    VALUES_AT,
    VALUES_SIZE,
    WIDTH,
    Integers,
)
from engine.codec.parquet_stream_kernels import (
    AT,
    BITS,
    END,
    LEFT,
    STATE,
    bits_from,
    check_indices,
    expand_indices,
    kept_bits,
    next_indices,
    ones,
    put_bits,
    put_ones,
    read_levels,
    skip_indices,
)
from engine.codec.parquet_value_kernels import convert, join_streams, look_up, read_deltas

_FEW = 12
"""Up to so many kept rows of 64 are taken one by one."""
_FEW_GAPS = 10
"""Up to so many left-out rows or nulls of 64 what lies between them is copied at once."""
_FEWEST_GAPS = 4
"""Up to so many left-out rows of 64 what lies between them is decoded at once, to where it belongs."""


def spread_of(move: Callable[[int, int], int], width: int) -> Callable[..., int]:
    """A function that puts values of a width where rows are that are valid and kept."""

    def spread(values: int, valid: int, keep: int, count: int, out: int) -> int:
        """Up to 64 rows: those kept to `out`, and one more; gives which of those are valid."""
        kept = 0
        at = 0
        place = 0
        if valid == ones(count):
            kept = ones(count_ones(keep))
            while keep:
                move(out + width * at, values + width * lowest_one(keep))
                at += 1
                keep &= keep - 1
            return kept
        # Where a value is missing, or not kept.
        gaps = ~(keep & valid) & ones(count)
        if count_ones(gaps) <= _FEW_GAPS:
            start = 0
            while start < count:
                end = lowest_one(gaps) if gaps else count
                gaps &= gaps - 1
                length = end - start
                for i in range(length):
                    move(out + width * (at + i), values + width * (place + i))
                if length:
                    kept |= ones(length) << at
                at += length
                place += length
                if end < count:
                    # Nulls have some value too.
                    move(out + width * at, values + width * place)
                    at += shifted_right(keep, end) & 1
                    place += shifted_right(valid, end) & 1
                start = end + 1
            return kept
        if count_ones(keep) <= _FEW:
            while keep:
                i = lowest_one(keep)
                move(out + width * at, values + width * count_ones(valid & ones(i)))
                kept |= (shifted_right(valid, i) & 1) << at
                at += 1
                keep &= keep - 1
            return kept
        for i in range(count):
            move(out + width * at, values + width * place)
            is_valid = shifted_right(valid, i) & 1
            is_kept = shifted_right(keep, i) & 1
            kept |= (is_valid & is_kept) << at
            place += is_valid
            at += is_kept
        return kept

    return spread


spread4 = spread_of(move4, 4)
spread8 = spread_of(move8, 8)
spread16 = spread_of(move16, 16)


def spread_rows(width: int, values: int, valid: int, keep: int, count: int, out: int) -> int:
    """See `spread_of`."""
    if width == 4:
        return spread4(values, valid, keep, count, out)
    if width == 8:
        return spread8(values, valid, keep, count, out)
    return spread16(values, valid, keep, count, out)


def prepare_values(page: Integers, position: int, end: int, count: int, scratch: int, state: Integers) -> int:
    """Where the plain values of a page are, decoded to scratch if need be; 0 for indices, or an error code."""
    encoding = page[ENCODING]
    width = page[WIDTH]
    if encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        bits = 0
        if position < end:
            bits = load8(position)
        elif count > 0:
            return TRUNCATED
        if bits > 32:
            return BAD_BIT_WIDTH
        state[AT], state[END], state[BITS], state[LEFT] = position + 1, end, bits, 0
        return 0
    if encoding == PLAIN:
        return position if count <= (end - position) // width else TRUNCATED
    if encoding == BYTE_STREAM_SPLIT:
        stride = (end - position) // width
        if stride * width != end - position:
            return BAD_STREAM
        if count > stride:
            return TRUNCATED
        join_streams(position, stride, width, count, scratch)
        return scratch
    if encoding == DELTA_BINARY_PACKED:
        failed = read_deltas(position, end, count, width, scratch)
        return failed if failed < 0 else scratch
    return UNKNOWN


def decode_page_at(address: int) -> int:
    """Decode the page that DECODE_LENGTH numbers at an address tell of.

    Returns:
        How many rows it put into the array; or an error code.
    """
    page = int64s_at(address, DECODE_LENGTH)
    rows = page[VALUES]
    block = page[SCRATCH_AT]
    state = int64s_at(block, STATE)
    words = block + BLOCK_SCRATCH
    copied = words
    if page[LEVELS] != NO_LEVELS:
        copied += ((rows >> 6) + 2) << 3
    needed = copied - block
    if page[ENCODING] in (DELTA_BINARY_PACKED, BYTE_STREAM_SPLIT):
        needed += (rows + 8) * page[WIDTH]
    if page[SCRATCH_SIZE] < needed:
        return NO_ROOM
    position = page[VALUES_AT]
    end = position + page[VALUES_SIZE]
    present = rows
    if page[LEVELS] != NO_LEVELS:
        levels, size = page[LEVELS_AT], page[LEVELS_SIZE]
        if page[LEVELS] == LEVELS_BEFORE_VALUES:
            if rows > 0 and end - position < 4:
                return TRUNCATED
            levels = position + 4
            size = load32(position) if rows > 0 else 0
            if size < 0 or (rows > 0 and size > end - levels):
                return TRUNCATED
            position = levels + size if rows > 0 else position
        for i in range((rows >> 6) + 2):
            store64(words + 8 * i, 0)
        present = read_levels(levels, levels + size, rows, words)
        if present < 0:
            return present
    source = prepare_values(page, position, end, present, copied, state)
    if source < 0:
        return source
    if source == copied:
        end = block + needed
    if present == rows and page[KEEP_AT] == 0:
        return decode_all(page, source, end, state, block)
    return decode_some(page, source, end, state, block, words if present < rows else 0)


def decode_all(page: Integers, source: int, end: int, state: Integers, block: int) -> int:
    """A page without nulls whose rows are all kept, straight to the array."""
    rows = page[VALUES]
    first = page[OUT_ROW]
    if rows > page[OUT_ROWS] - first:
        return NO_ROOM
    out_width = page[OUT_WIDTH]
    out = page[OUT_AT] + first * out_width
    if page[VALIDITY_AT]:
        put_ones(page[VALIDITY_AT], first, rows)
    if source:
        convert(source, end, page[WIDTH], page[FORM], rows, out, out_width)
        return rows
    indices = uint32s_at(block + 8 * STATE, BLOCK)
    for at in range(0, rows, BLOCK):
        count = min(BLOCK, rows - at)
        failed = next_indices(state, count, indices)
        if failed == 0:
            failed = check_indices(indices, count, page[DICTIONARY_VALUES])
        if failed < 0:
            return failed
        make_values(page, 0, 0, indices, 0, count, out + at * out_width)
    return rows


def decode_some(page: Integers, source: int, end: int, state: Integers, block: int, words: int) -> int:
    """A page with nulls, if `words` tell which values are there, or with rows that are not kept."""
    rows = page[VALUES]
    row = page[OUT_ROW]
    indices = uint32s_at(block + 8 * STATE, BLOCK)
    values = block + 8 * STATE + 8 * BLOCK + 256
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        present = count
        if words:
            present = 0
            for at in range(start, start + count, 64):
                present += count_ones(load64(words + (at >> 3)))
        kept = count if page[KEEP_AT] == 0 else kept_rows(page[KEEP_AT], page[KEEP_ROW] + start, count)
        if kept > page[OUT_ROWS] - row:
            return NO_ROOM
        if source == 0:
            failed = 0
            if kept:
                failed = next_indices(state, present, indices)
                if failed == 0:
                    failed = check_indices(indices, present, page[DICTIONARY_VALUES])
            else:
                failed = skip_indices(state, present)
            if failed < 0:
                return failed
        if kept and words and source:
            make_values(page, source, end, indices, 0, present, values)
            spread_block(page, values, start, count, words, row)
        elif kept:
            by_row = indices
            if words:
                by_row = uint32s_at(block + 8 * STATE + 4 * BLOCK + 128, BLOCK)
                # Of nulls after the last value.
                indices[present] = 0
                expand_indices(indices, words, start, count, by_row)
            put_validity(page, words, start, count, row, kept)
            if page[KEEP_AT] == 0:
                make_values(page, source, end, by_row, 0, count, page[OUT_AT] + row * page[OUT_WIDTH])
            else:
                keep_block(page, source, end, by_row, values, start, count, row)
        row += kept
        if source:
            source += present * page[WIDTH]
    return row - page[OUT_ROW]


def put_validity(page: Integers, words: int, start: int, count: int, row: int, kept: int) -> None:
    """Tell of the kept rows of a block whether they are valid, if the column has nulls at all."""
    if page[VALIDITY_AT] == 0:
        return
    if words == 0:
        put_ones(page[VALIDITY_AT], row, kept)
        return
    for at in range(0, count, 64):
        part = min(64, count - at)
        keep = ones(part)
        if page[KEEP_AT]:
            keep &= bits_from(page[KEEP_AT], page[KEEP_ROW] + start + at)
        found = kept_bits(load64(words + ((start + at) >> 3)) & ones(part), keep, part)
        own = count_ones(keep)
        put_bits(page[VALIDITY_AT], row, found & ones(own), own)
        page[NULLS] += own - count_ones(found & ones(own))
        row += own


def make_values(page: Integers, source: int, end: int, indices: Integers, first: int, count: int, out: int) -> None:
    """Values of the block in hand, from its value `first` on: plain from `source`, or those of indices."""
    if source:
        width = page[WIDTH]
        convert(source + first * width, end, width, page[FORM], count, out, page[OUT_WIDTH])
    else:
        look_up(indices, first, count, page[DICTIONARY_AT], out, page[DICTIONARY_WIDTH], page[OUT_WIDTH])


def keep_block(
    page: Integers,
    source: int,
    end: int,
    indices: Integers,
    values: int,
    start: int,
    count: int,
    row: int,
) -> None:
    """Put the kept rows of a block without nulls into the array from `row` on."""
    width = page[OUT_WIDTH]
    out = page[OUT_AT] + row * width
    begun = 0  # from here on all rows are kept, and not yet put
    for at in range(0, count, 64):
        part = min(64, count - at)
        keep = bits_from(page[KEEP_AT], page[KEEP_ROW] + start + at) & ones(part)
        gaps = ~keep & ones(part)
        if count_ones(gaps) <= _FEWEST_GAPS:
            while gaps:
                gap = at + lowest_one(gaps)
                if gap > begun:
                    make_values(page, source, end, indices, begun, gap - begun, out)
                    out += (gap - begun) * width
                begun = gap + 1
                gaps &= gaps - 1
            continue
        if at > begun:
            make_values(page, source, end, indices, begun, at - begun, out)
            out += (at - begun) * width
        begun = at + part
        if keep:
            make_values(page, source, end, indices, at, part, values)
            spread_rows(width, values, ones(part), keep, part, out)
            out += count_ones(keep) * width
    if count > begun:
        make_values(page, source, end, indices, begun, count - begun, out)


def kept_rows(keep: int, first: int, count: int) -> int:
    """How many of the rows from `first` on are kept."""
    found = 0
    for at in range(0, count, 64):
        found += count_ones(bits_from(keep, first + at) & ones(min(64, count - at)))
    return found


def spread_block(page: Integers, values: int, start: int, count: int, words: int, row: int) -> None:
    """Put the kept rows of a block, whose values are in hand, into the array from `row` on."""
    out_width = page[OUT_WIDTH]
    for at in range(0, count, 64):
        part = min(64, count - at)
        own = ones(part)
        valid = load64(words + ((start + at) >> 3)) if words else own
        keep = own if page[KEEP_AT] == 0 else bits_from(page[KEEP_AT], page[KEEP_ROW] + start + at) & own
        kept = count_ones(keep)
        if kept:
            found = spread_rows(out_width, values, valid, keep, part, page[OUT_AT] + row * out_width)
            if page[VALIDITY_AT]:
                found &= ones(kept)
                put_bits(page[VALIDITY_AT], row, found, kept)
                page[NULLS] += kept - count_ones(found)
            row += kept
        values += count_ones(valid) * out_width
