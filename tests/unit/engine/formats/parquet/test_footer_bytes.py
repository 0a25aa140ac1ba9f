import io

import pyarrow as pa
import pyarrow.parquet as pq

from icebench.engine.formats.parquet.footer_bytes import footer_bytes, footer_file


def test_a_footer_is_found_by_one_request_or_two() -> None:
    for columns in (3, 3000):
        table = pa.table({f"column_{i}": [1] for i in range(columns)})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        data = sink.getvalue()
        footer = footer_bytes(pa.BufferReader(data), len(data))
        assert footer is not None
        assert pq.read_metadata(footer_file(footer)).equals(pq.read_metadata(io.BytesIO(data)))
    for other in (b"", b"PAR1", data[:-1], data[:-8] + b"\xff\xff\xff\xffPAR1"):
        assert footer_bytes(pa.BufferReader(other), len(other)) is None
