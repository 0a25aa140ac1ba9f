"""Iceberg Java makes the changes of a history: by Spark SQL and DataFrames, and through its own API where Spark has no
word for a change (equality deletes, column defaults, types that Spark lacks)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import icebench
from icebench.engine.codec.metadata_json.values import value_to_json
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import DecimalType, PrimitiveType, Type
from tests.interop.histories import language as lang
from tests.interop.histories.filters import Row, literal
from tests.interop.histories.rows_as_arrow import arrow_rows, for_spark, imported_file, internal_value

Jvm = Any
"""An object in the JVM, as py4j shows it."""

_ICEBERG = "org.apache.iceberg"
_SPARK_NAMES = {
    "long": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}


def spark_name(type_: Type) -> str:
    """A primitive type in Spark's SQL."""
    assert isinstance(type_, PrimitiveType)
    if isinstance(type_, DecimalType):
        return f"decimal({type_.precision},{type_.scale})"
    return _SPARK_NAMES.get(type_.name, type_.name)


@dataclass
class Java:
    """Args:
    spark: The session.
    catalog: The catalog that all share, by Spark's name for it.
    ours: Our handle, for the schema of rows.
    ids: Label -> snapshot id.
    """

    spark: SparkSession
    catalog: str
    ours: icebench.Table
    ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.catalog}.{self.ours.name}"

    @property
    def jvm(self) -> Jvm:
        return self.spark.sparkContext._jvm

    @property
    def table(self) -> Jvm:
        """The table as Iceberg's own object."""
        return self.jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name)

    def perform(self, change: lang.Change) -> None:
        self.ours.refresh()
        match change:
            case lang.Append(rows, branch, wap):
                self._append(rows, branch, wap)
            case lang.Overwrite(rows, where, branch):
                writer = self._frame(rows).writeTo(self._branch(branch))
                writer.overwrite(F.lit(True) if where is None else F.expr(where.text))
            case lang.OverwritePartitions(rows):
                self._frame(rows).writeTo(self.name).overwritePartitions()
            case lang.Delete(where, branch):
                self.spark.sql(f"delete from {self._branch(branch)} where {where.text}")
            case lang.Update(where, values, branch):
                sets = ", ".join(f"{name} = {'null' if v is None else literal(v)}" for name, v in values.items())
                self.spark.sql(f"update {self._branch(branch)} set {sets} where {where.text}")
            case lang.Upsert(rows, on, branch):
                self._frame(rows).createOrReplaceTempView("history_rows")
                keys = " and ".join(f"t.{name} <=> s.{name}" for name in on)
                self.spark.sql(
                    f"""merge into {self._branch(branch)} t using history_rows s on {keys}
                        when matched then update set * when not matched then insert *"""
                )
            case lang.ImportFile(rows):
                file = imported_file(rows, self.ours.metadata.schema, self.ours.location)
                self._call("add_files", f"source_table => '`parquet`.`{file.parent}`'")
            case lang.DeleteKeys(keys, partition):
                self._delete_keys(keys, partition)
            case _:
                self._changed_layout(change)

    def _changed_layout(self, change: lang.Change) -> None:
        match change:
            case lang.AddField(column, transform, name):
                called = "" if name is None else f" as {name}"
                self._alter(f"add partition field {sql_transform(column, transform)}{called}")
            case lang.DropField(name):
                self._alter(f"drop partition field {name}")
            case lang.RenameField(name, new):
                self.table.updateSpec().renameField(name, new).commit()
            case lang.Sort(keys):
                order = ", ".join(f"{column} {way} {nulls.replace('-', ' ')}" for column, way, nulls in keys)
                self._alter(f"write ordered by {order}")
            case lang.SetProperties(values):
                pairs = ", ".join(f"'{key}'='{value}'" for key, value in values.items())
                self._alter(f"set tblproperties ({pairs})")
            case lang.Upgrade(version):
                self._alter(f"set tblproperties ('format-version'='{version}')")
            case lang.RewriteData():
                self._call("rewrite_data_files", "options => map('rewrite-all', 'true')")
            case lang.RewriteManifests():
                self._call("rewrite_manifests")
            case lang.RewritePositionDeletes():
                self._call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")
            case lang.Expire(keep):
                soon = "timestamp '2999-01-01 00:00:00'"
                self._call("expire_snapshots", f"older_than => {soon}, retain_last => {keep}")
            case _:
                self._moved_refs(change)

    def _moved_refs(self, change: lang.Change) -> None:
        match change:
            case lang.Branch(name, label):
                self._alter(f"create branch {name}{self._at(label)}")
            case lang.Tag(name, label):
                self._alter(f"create tag {name}{self._at(label)}")
            case lang.DropRef(name):
                kind = self.ours.refs[name].type
                self._alter(f"drop {kind} {name}")
            case lang.FastForward(branch, to):
                self._call("fast_forward", f"branch => '{branch}', to => '{to}'")
            case lang.SetCurrent(label):
                self._call("set_current_snapshot", f"snapshot_id => {self.ids[label]}")
            case lang.Rollback(label):
                self._call("rollback_to_snapshot", f"snapshot_id => {self.ids[label]}")
            case lang.Publish(wap):
                self._call("publish_changes", f"wap_id => '{wap}'")
            case _:
                self._edited_schema(change)

    def _edited_schema(self, change: lang.Change) -> None:
        match change:
            case lang.AddColumn(path, type_, None):
                self._alter(f"add column {path} {spark_name(type_)}")
            case lang.AddColumn(path, type_, default):
                java_type = self.jvm.org.apache.iceberg.types.Types.fromPrimitiveString(str(type_))
                value = self._default(java_type, type_, default)
                self.table.updateSchema().addColumn(path, java_type, None, value).commit()
            case lang.DropColumn(path):
                self._alter(f"drop column {path}")
            case lang.RenameColumn(path, new):
                self._alter(f"rename column {path} to {new}")
            case lang.Promote(path, type_):
                java_type = self.jvm.org.apache.iceberg.types.Types.fromPrimitiveString(str(type_))
                self.table.updateSchema().updateColumn(path, java_type).commit()
            case lang.Move(path, after):
                place = "first" if after is None else f"after {after}"
                self._alter(f"alter column {path} {place}")
            case lang.WriteDefault(path, value):
                type_ = self.ours.metadata.schema.find(path).type
                java_type = self.jvm.org.apache.iceberg.types.Types.fromPrimitiveString(str(type_))
                made = self._default(java_type, type_, value)
                self.table.updateSchema().updateColumnDefault(path, made).commit()
            case _:
                raise NotImplementedError(f"Iceberg Java does not make {change}")

    # ---- rows ----------------------------------------------------------------------------------------------------

    def _append(self, rows: Sequence[Row], branch: str, wap: str | None) -> None:
        schema = self.ours.metadata.schema
        if lacks_spark_type(schema):
            self._append_by_api(rows, schema)
            return
        if wap is not None:
            self.spark.conf.set("spark.wap.id", wap)
        try:
            self._frame(rows).writeTo(self._branch(branch)).append()
        finally:
            self.spark.conf.unset("spark.wap.id")

    def _frame(self, rows: Sequence[Row]) -> DataFrame:
        """The rows with all columns: what a row does not have is null, as Spark has no write defaults of Iceberg."""
        schema = self.ours.metadata.schema
        whole = [{f.name: row.get(f.name) for f in schema.fields} for row in rows]
        return self.spark.createDataFrame(for_spark(arrow_rows(whole, schema)))

    def _append_by_api(self, rows: Sequence[Row], schema: Schema) -> None:
        table = self.table
        writer = self._writers(table).build().newDataWriter(self._output(table), table.spec(), None)
        for row in rows:
            writer.write(self._record(table.schema(), schema, row))
        writer.close()
        table.newAppend().appendFile(writer.toDataFile()).commit()

    def _delete_keys(self, keys: Sequence[Row], partition: Sequence[Any]) -> None:
        table, schema = self.table, self.ours.metadata.schema
        names = self.jvm.java.util.ArrayList()
        for name in keys[0]:
            names.add(name)
        key_schema = table.schema().select(names)
        ids = self._gateway().new_array(self._gateway().jvm.int, len(keys[0]))
        for place, name in enumerate(keys[0]):
            ids[place] = schema.find(name).field_id
        builder = self._writers(table).equalityFieldIds(ids).equalityDeleteRowSchema(key_schema)
        place = self._partition(table, partition)
        writer = builder.build().newEqualityDeleteWriter(self._output(table), table.spec(), place)
        for key in keys:
            writer.write(self._record(key_schema, Schema(tuple(f for f in schema.fields if f.name in key)), key))
        writer.close()
        table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    def _partition(self, table: Jvm, values: Sequence[Any]) -> Jvm:
        if not values:
            return None
        made = self.jvm.org.apache.iceberg.data.GenericRecord.create(table.spec().partitionType())
        for place, value in enumerate(values):
            made.set(place, value)
        return made

    def _record(self, java_schema: Jvm, schema: Schema, row: Row) -> Jvm:
        """A row of primitive values as Iceberg's generic record, by way of the specification's JSON."""
        made = self.jvm.org.apache.iceberg.data.GenericRecord.create(java_schema)
        for f in schema.fields:
            value = row.get(f.name)
            if value is not None:
                java_type = java_schema.findType(f.name)
                arguments = self.jvm.java.util.ArrayList()
                for argument in (made, f.name, java_type, java_type, as_json(f.type, value)):
                    arguments.add(argument)
                self._setter.invokeWithArguments(arguments)
        return made

    @cached_property
    def _setter(self) -> Jvm:
        """``record.setField(name, internalToGeneric(type, fromJson(type, text)))`` as one method handle: on its way
        through py4j a small long would become an int."""
        value, text, type_ = map(self._class, ("java.lang.Object", "java.lang.String", f"{_ICEBERG}.types.Type"))
        lookup = self.jvm.java.lang.invoke.MethodHandles.publicLookup()
        parser, generic = self._class(f"{_ICEBERG}.SingleValueParser"), self._class(f"{_ICEBERG}.data.GenericDataUtil")
        parse = lookup.findStatic(parser, "fromJson", self._signature(value, type_, text))
        convert = lookup.findStatic(generic, "internalToGeneric", self._signature(value, type_, value))
        taking = self._signature(self.jvm.java.lang.Void.TYPE, text, value)
        set_field = lookup.findVirtual(self._class(f"{_ICEBERG}.data.Record"), "setField", taking)
        collect = self.jvm.java.lang.invoke.MethodHandles.collectArguments
        return collect(set_field, 2, collect(convert, 1, parse))

    def json_of(self, struct: Jvm, place: int, java_type: Jvm) -> Any:
        """A value of a struct of internal values, by the specification's JSON; None for null."""
        arguments = self.jvm.java.util.ArrayList()
        for argument in (java_type, struct, place, self._class("java.lang.Object")):
            arguments.add(argument)
        return json.loads(self._getter.invokeWithArguments(arguments))

    @cached_property
    def _getter(self) -> Jvm:
        """``toJson(type, struct.get(place, class))`` as one method handle, for the same reason as `_setter`."""
        value, text, type_ = map(self._class, ("java.lang.Object", "java.lang.String", f"{_ICEBERG}.types.Type"))
        lookup = self.jvm.java.lang.invoke.MethodHandles.publicLookup()
        taking = self._signature(value, self.jvm.java.lang.Integer.TYPE, self._class("java.lang.Class"))
        get = lookup.findVirtual(self._class(f"{_ICEBERG}.StructLike"), "get", taking)
        parser = self._class(f"{_ICEBERG}.SingleValueParser")
        write = lookup.findStatic(parser, "toJson", self._signature(text, type_, value))
        return self.jvm.java.lang.invoke.MethodHandles.collectArguments(write, 1, get)

    def _class(self, name: str) -> Jvm:
        return self.jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)

    def _signature(self, result: Jvm, *arguments: Jvm) -> Jvm:
        taken = self._gateway().new_array(self.jvm.java.lang.Class, len(arguments))
        for place, argument in enumerate(arguments):
            taken[place] = argument
        return self.jvm.java.lang.invoke.MethodType.methodType(result, taken)

    def _internal(self, java_type: Jvm, type_: Type, value: Any) -> Jvm:
        return self.jvm.org.apache.iceberg.SingleValueParser.fromJson(java_type, as_json(type_, value))

    def _default(self, java_type: Jvm, type_: Type, value: Any) -> Jvm:
        literals = self.jvm.org.apache.iceberg.expressions.Literal
        return literals.of(self._internal(java_type, type_, value)).to(java_type)

    def _writers(self, table: Jvm) -> Jvm:
        return self.jvm.org.apache.iceberg.data.GenericFileWriterFactory.Builder(table)

    def _output(self, table: Jvm) -> Jvm:
        return self.jvm.org.apache.iceberg.io.OutputFileFactory.builderFor(table, 1, 1).build().newOutputFile()

    def _gateway(self) -> Jvm:
        return self.spark.sparkContext._gateway

    # ---- words ---------------------------------------------------------------------------------------------------

    def _branch(self, branch: str) -> str:
        return self.name if branch == "main" else f"{self.name}.branch_{branch}"

    def _alter(self, what: str) -> None:
        self.spark.sql(f"alter table {self.name} {what}")

    def _call(self, procedure: str, arguments: str = "") -> None:
        more = f", {arguments}" if arguments else ""
        self.spark.sql(f"call {self.catalog}.system.{procedure}(table => '{self.ours.name}'{more})").collect()

    def _at(self, label: str | None) -> str:
        return "" if label is None else f" as of version {self.ids[label]}"


def as_json(type_: Type, value: Any) -> str:
    """A value of the model in the specification's JSON."""
    return json.dumps(value_to_json(type_, internal_value(type_, value)))


def sql_transform(column: str, transform: str) -> str:
    """A transform in Spark's SQL: ``bucket[4]`` of id is ``bucket(4, id)``."""
    if transform == "identity":
        return column
    name, _, width = transform.rstrip("]").partition("[")
    return f"{name}({width}, {column})" if width else f"{name}s({column})"


def lacks_spark_type(schema: Schema) -> bool:
    """Whether Iceberg's Spark integration has no type for a column."""
    return any(str(f.type) in {"time", "timestamp_ns", "timestamptz_ns"} for f in schema.by_id.values())
