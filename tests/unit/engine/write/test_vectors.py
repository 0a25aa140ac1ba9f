import numpy as np
import pyarrow as pa
import pytest

from icebench.engine.codec.puffin.file import read_blob, read_footer
from icebench.engine.deletes.files import DeleteFile
from icebench.engine.deletes.vectors import load_vectors
from icebench.engine.runtime.counters import FILES_WRITTEN, Counters
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.spec.data_file import DataFile, FileContent
from icebench.engine.storage.memory import MemoryStore
from icebench.engine.write.delete_files import DeletedRows
from icebench.engine.write.vectors import write_deletion_vectors
from icebench.errors import Invalid
from tests.unit.engine.write.metadata_for_writes import LOCATION, metadata_of

METADATA = metadata_of(pa.schema([("id", pa.int64())]), format_version=3)


def deleted(path: str, *positions: int) -> DeletedRows:
    return DeletedRows(file_path=path, positions=np.array(positions, np.int64))


def planned(file: DataFile) -> DeleteFile:
    return DeleteFile(
        content=file.content,
        file_path=file.file_path,
        file_format=file.file_format,
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        sequence_number=1,
        referenced_data_file=file.referenced_data_file,
        content_offset=file.content_offset,
        content_size_in_bytes=file.content_size_in_bytes,
    )


def test_vectors_share_a_puffin_file_that_describes_them() -> None:
    store, counters = MemoryStore(), Counters()
    far = 2**40 + 3
    files = write_deletion_vectors(
        [deleted("f2", 5, 1, 5), deleted("f1", far, 0), deleted("f3")],
        metadata=METADATA,
        store=store,
        counters=counters,
    )
    assert [(f.referenced_data_file, f.record_count) for f in files] == [("f1", 2), ("f2", 2)]
    assert {f.file_path for f in files} == {info.location for info in store.list(LOCATION)}
    assert counters[FILES_WRITTEN] == 1
    data = store.read(files[0].file_path)
    footer = read_footer(data)
    assert footer.properties == {"created-by": "icebench"}
    for file, blob in zip(files, footer.blobs, strict=True):
        assert (file.content, file.file_format) == (FileContent.POSITION_DELETES, "puffin")
        assert file.file_size_in_bytes == len(data)
        assert (blob.type, blob.fields, blob.snapshot_id, blob.sequence_number) == (
            "deletion-vector-v1",
            (2147483645,),
            -1,
            -1,
        )
        assert blob.compression_codec is None
        assert blob.properties == {
            "referenced-data-file": file.referenced_data_file,
            "cardinality": str(file.record_count),
        }
        assert file.content_offset is not None
        assert file.content_size_in_bytes is not None
        part = data[file.content_offset : file.content_offset + file.content_size_in_bytes]
        assert part == read_blob(data, blob)
    vectors = [planned(f) for f in files]
    found = load_vectors(vectors, store=store, runner=LocalRunner(1), counters=counters, rows={})
    assert [found[v].tolist() for v in vectors] == [[0, far], [1, 5]]


def test_puffin_files_roll_at_the_target_size() -> None:
    store = MemoryStore()
    files = write_deletion_vectors(
        [deleted(f"f{i}", *range(0, 500, 3)) for i in range(6)],
        metadata=METADATA,
        store=store,
        properties={"write.delete.target-file-size-bytes": "900"},
    )
    assert len({f.file_path for f in files}) == 3
    vectors = [planned(f) for f in files]
    found = load_vectors(vectors, store=store, runner=LocalRunner(2), counters=Counters(), rows={})
    assert all(found[v].tolist() == list(range(0, 500, 3)) for v in vectors)


def test_version_2_takes_no_vectors() -> None:
    with pytest.raises(Invalid, match="position deletes"):
        write_deletion_vectors([], metadata=metadata_of(pa.schema([("id", pa.int64())])), store=MemoryStore())
