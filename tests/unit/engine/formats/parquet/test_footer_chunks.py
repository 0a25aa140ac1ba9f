"""Column chunks in footers made by hand."""

from __future__ import annotations

from icebench.engine.formats.parquet.footer_chunks import listed_by_kernel, listed_in_python


def varint(value: int) -> bytes:
    made = b""
    while value > 127:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def field(step: int, type_: int, body: bytes) -> bytes:
    """A field so many numbers after the one before."""
    return bytes([step << 4 | type_]) + body


def binary(data: bytes) -> bytes:
    return varint(len(data)) + data


def test_what_a_footer_says_is_found_among_what_it_says_besides() -> None:
    statistics = field(12, 12, field(1, 8, binary(b"\x00")) + field(6, 8, binary(b"x")) + b"\x00")
    histogram = field(1, 6, zigzag(3)) + field(1, 9, b"\x26" + zigzag(1) + zigzag(2)) + b"\x00"
    meta = (
        field(1, 5, zigzag(2))
        + field(1, 9, b"\x25" + zigzag(0) + zigzag(8))
        + field(1, 9, b"\x18" + binary(b"a"))
        + field(1, 5, zigzag(6))
        + field(1, 6, zigzag(100))
        + field(1, 6, zigzag(9))
        + field(1, 6, zigzag(77))
        + field(1, 9, b"\x1c" + field(1, 8, binary(b"k")) + b"\x00")
        + field(1, 6, zigzag(40))
        + field(2, 6, zigzag(4))
        + field(1, 12, statistics[1:])
        + field(4, 12, histogram)
        + b"\x00"
    )
    group = (
        field(1, 9, b"\x1c" + field(2, 6, zigzag(4)) + field(1, 12, meta) + b"\x00")
        + field(2, 6, zigzag(100))
        + b"\x00"
    )
    footer = field(1, 5, zigzag(2)) + field(3, 9, b"\x1c" + group) + b"\x00"
    for listed in (listed_in_python, listed_by_kernel):
        chunks, orders = listed(footer, 1, 1)
        assert chunks is not None
        statistics_at = footer.index(b"\x18\x01\x00")
        assert chunks[0, 0].tolist() == [0, 100, 40, 4, 0, 2, statistics_at]
        assert orders == -1
        assert listed(footer, 1, 2) == (None, -1)
        for cut in range(len(footer)):
            assert listed(footer[:cut], 1, 1) == (None, -1)
