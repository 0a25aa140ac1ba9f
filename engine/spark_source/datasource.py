"""``format("icebench")`` as a Python data source of Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import datasource as sd
from pyspark.sql import types as st

from icebench.engine.spark.arrow_batches import spark_schema
from icebench.engine.spark.workers import prepare_worker
from icebench.engine.spark_source.batch_writer import BatchWriter, SourceWrite
from icebench.engine.spark_source.options import is_stream, read_options, stream_options, write_options
from icebench.engine.spark_source.reader import (
    BatchReader,
    ChangelogReader,
    PushingReader,
    changelog_span,
    options_scan,
)
from icebench.engine.spark_source.stream_reader import StreamReader, stream_schema
from icebench.engine.spark_source.stream_writer import StreamWriter

NAME = "icebench"


class TableSource(sd.DataSource):
    """The data source; `icebench.engine.spark_source.options` documents its options."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return NAME

    def schema(self) -> st.StructType:
        """The columns of a read."""
        prepare_worker()
        if is_stream(self.options):
            return stream_schema(stream_options(self.options))
        options = read_options(self.options)
        table = options.place.load()
        if options.changelog is not None:
            return spark_schema(changelog_span(options).schema(table))
        return spark_schema(options_scan(table, options).schema)

    def reader(self, schema: st.StructType) -> sd.DataSourceReader:
        """The reader of a batch query."""
        prepare_worker()
        options = read_options(self.options)
        if options.changelog is not None:
            return ChangelogReader(changelog_span(options), schema)
        return (PushingReader if options.pushes else BatchReader)(options, schema)

    def streamReader(self, schema: st.StructType) -> sd.DataSourceStreamReader:  # noqa: N802 - Spark's name
        """The reader of a streaming query."""
        return StreamReader(stream_options(self.options), schema)

    def writer(self, schema: st.StructType, overwrite: bool) -> sd.DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """The writer of a batch."""
        prepare_worker()
        return BatchWriter(SourceWrite(write_options(self.options), schema), overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: st.StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's signature
    ) -> sd.DataSourceStreamWriter:
        """The writer of a streaming query; it overwrites for ``outputMode("complete")``."""
        prepare_worker()
        return StreamWriter(SourceWrite(write_options(self.options), schema), overwrite=overwrite)


def register(spark: SparkSession) -> None:
    """Register ``format("icebench")`` with a session."""
    spark.dataSource.register(TableSource)
