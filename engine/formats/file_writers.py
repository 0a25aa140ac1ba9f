"""Writers of data and delete files, by format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from icebench.engine.formats.avro.avro_writer import AvroFileWriter, AvroOptions
from icebench.engine.formats.file_writer import FileWriter
from icebench.engine.formats.metrics_modes import MetricsMode
from icebench.engine.formats.orc.orc_writer import OrcFileWriter, OrcOptions
from icebench.engine.formats.parquet.parquet_writer import ParquetFileWriter, ParquetOptions
from icebench.engine.runtime.local import ONE_THREAD
from icebench.engine.runtime.runner import Runner
from icebench.engine.spec.properties import DELETE_PREFIX, WRITE_PREFIX
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder
from icebench.engine.storage.store import OutputFile

WriteOptions: TypeAlias = ParquetOptions | OrcOptions | AvroOptions

_OPTIONS: dict[str, type[WriteOptions]] = {"parquet": ParquetOptions, "orc": OrcOptions, "avro": AvroOptions}


def write_options(file_format: str, properties: Mapping[str, str], *, for_deletes: bool = False) -> WriteOptions:
    """The options ``write.<format>.*`` of a table; those of delete files stand above them.

    Raises:
        Invalid: A wrong value.
        Unsupported: A property that is not implemented.
    """
    own, plain = f"{DELETE_PREFIX}{file_format}.", f"{WRITE_PREFIX}{file_format}."
    if for_deletes:
        given = {name.replace(own, plain): text for name, text in properties.items() if name.startswith(own)}
        properties = {**properties, **given}
    return _OPTIONS[file_format].of(properties)


def open_writer(
    output: OutputFile,
    arrow_schema: pa.Schema,
    schema: Schema,
    *,
    modes: Mapping[int, MetricsMode],
    options: WriteOptions,
    sort_order: SortOrder | None = None,
    key_values: Mapping[str, str] | None = None,
    runner: Runner = ONE_THREAD,
) -> FileWriter:
    """A writer of one file, in the format of the options; see the writers for the arguments."""
    match options:
        case ParquetOptions():
            return ParquetFileWriter(
                output,
                arrow_schema,
                schema,
                modes=modes,
                options=options,
                sort_order=sort_order,
                key_values=key_values,
                runner=runner,
            )
        case OrcOptions():
            return OrcFileWriter(output, arrow_schema, schema, modes=modes, options=options)
        case AvroOptions():
            return AvroFileWriter(output, arrow_schema, schema, modes=modes, options=options, key_values=key_values)
