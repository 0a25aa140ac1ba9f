"""Opens data and delete files by their format."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from icebench.engine.errors import Unsupported
from icebench.engine.formats.name_mapping import FilesWithoutIds
from icebench.engine.formats.parquet.source import ParquetSource
from icebench.engine.formats.source import Source
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.name_mapping import NameMapping
from icebench.engine.storage.store import Store

if TYPE_CHECKING:
    from icebench.engine.formats.avro import source as avro
    from icebench.engine.formats.orc import source as orc
else:  # loaded with the first file of that format
    avro = LazyModule("icebench.engine.formats.avro.source")
    orc = LazyModule("icebench.engine.formats.orc.source")

FORMATS = ("parquet", "orc", "avro")
"""The supported formats of data files."""


def check_format(file_format: str, location: str) -> None:
    """Raise Unsupported, naming the file, for any other format."""
    if file_format not in FORMATS:
        raise Unsupported(f"{location}: reading {file_format} files is not supported, only {', '.join(FORMATS)}")


def open_source(
    store: Store,
    location: str,
    *,
    file_format: str,
    name_mapping: NameMapping | None = None,
    without_ids: FilesWithoutIds | None = None,
    needed_by: str | None = None,
    dictionaries: Sequence[str] = (),
    size_bytes: int | None = None,
    field_ids: Collection[int] | None = None,
) -> Source:
    """Open a data or delete file.

    Args:
        store: Where the file is.
        location: The file.
        file_format: As its manifest entry says, in lower case.
        name_mapping: Field ids for files that have none.
        without_ids: The same where there is no name mapping.
        needed_by: What refers to the file, for errors, e.g. ``"table db.t, snapshot 17"``.
        dictionaries: Text columns of Parquet files, by name, that may come as Arrow dictionaries.
        size_bytes: The size of the file according to its manifest entry, if known; small Parquet files are then read
            by one request.
        field_ids: The top-level columns that will be read, so that the metadata of others is skipped in Parquet files;
            None for any.

    Raises:
        FileNotFound: Naming the file and `needed_by`.
        CorruptTable: The file is not of that format.
        Unsupported: Another format, or a file without field ids whose columns are ambiguous.
    """
    check_format(file_format, location)
    if file_format != "parquet":
        source = orc.OrcSource if file_format == "orc" else avro.AvroSource
        return source(store, location, name_mapping=name_mapping, without_ids=without_ids, needed_by=needed_by)
    return ParquetSource(
        store,
        location,
        name_mapping=name_mapping,
        without_ids=without_ids,
        needed_by=needed_by,
        dictionaries=dictionaries,
        size_bytes=size_bytes,
        field_ids=field_ids,
    )
