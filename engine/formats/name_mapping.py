"""Field ids for files that carry none (spec: "Column Projection", rule 2).

The specification leaves open what the columns of a file without ids are in a table without a name mapping, as Hive and
Impala make them. Iceberg Java numbers the columns of Parquet files from 1, and takes those of ORC and Avro files by
their present names. So does `FilesWithoutIds`, except where that would be a guess. Fields within a column of Parquet go
by name, where Iceberg Java's readers differ: on Spark they are null, elsewhere they go by position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pat

from icebench.engine.columnar.schemas import FIELD_ID_KEY, child_fields, field_id_of, is_list, with_element
from icebench.engine.errors import Contradiction, Unsupported
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.name_mapping import MappedField, NameMapping, mapping_of, misplaced_id, parse_name_mapping
from icebench.engine.spec.properties import NAME_MAPPING
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.types import children
from icebench.engine.storage.store import Store


def has_field_ids(schema: pa.Schema) -> bool:
    """Whether any field, at any depth, carries an id."""
    return any(_carries_id(f) for f in schema)


def _carries_id(field_: pa.Field) -> bool:
    return field_id_of(field_) is not None or any(_carries_id(child) for child in child_fields(field_.type))


def assign_field_ids(schema: pa.Schema, mapping: NameMapping | None, location: str) -> pa.Schema:
    """The schema of a file with field ids: its own, else those of the table's name mapping.

    Raises:
        Unsupported: The file has no ids and the table no mapping.
    """
    if has_field_ids(schema):
        return schema
    if mapping is None:
        raise Unsupported(f"{location} has no field ids and the table has no property {NAME_MAPPING.name}")
    return pa.schema(_with_ids(tuple(schema), mapping, ()))


def _with_ids(fields: Sequence[pa.Field], mapping: NameMapping, above: tuple[str, ...]) -> list[pa.Field]:
    made = []
    for f in fields:
        path = (*above, f.name)
        field_id = mapping.id_of(*path)
        plain = f.with_type(_type_with_ids(f.type, mapping, path)).remove_metadata()
        made.append(plain if field_id is None else plain.with_metadata({FIELD_ID_KEY: str(field_id)}))
    return made


def _type_with_ids(type_: pa.DataType, mapping: NameMapping, path: tuple[str, ...]) -> pa.DataType:
    if pat.is_struct(type_):
        return pa.struct(_with_ids(child_fields(type_), mapping, path))
    if pat.is_map(type_):
        key, value = type_.key_field.with_name("key"), type_.item_field.with_name("value")
        return pa.map_(*_with_ids((key, value), mapping, path), keys_sorted=type_.keys_sorted)
    if is_list(type_):
        (element,) = _with_ids((type_.value_field.with_name("element"),), mapping, path)
        return with_element(type_, element)
    return type_


@dataclass(frozen=True, slots=True)
class FilesWithoutIds:
    """The columns of files without field ids in a table without a name mapping.

    Args:
        schema: The schema that names columns.
        others: All schemas of the table, for former names.
        settled: Ids of the columns that no snapshot is older than. Planning takes it that older files lack the others.
        misplaced_id: Why the table's name mapping is not believed; see
            `icebench.engine.spec.name_mapping.misplaced_id`.
    """

    schema: Schema
    others: tuple[Schema, ...]
    settled: frozenset[int]
    misplaced_id: int | None = None

    @classmethod
    def of(
        cls, text: str | None, schema: Schema, metadata: TableMetadata, settled: frozenset[int]
    ) -> tuple[NameMapping | None, FilesWithoutIds]:
        """The mapping in a table's property, if it has one that is believed, and what holds without one.

        Raises:
            Invalid: The property is no name mapping.
        """
        mapping = None if text is None else parse_name_mapping(text)
        misplaced = None if mapping is None else misplaced_id(mapping, (schema, *metadata.schemas))
        without = cls(schema, metadata.schemas, settled, misplaced)
        return (mapping if misplaced is None else None), without

    def ids_of(self, stored: pa.Schema, location: str, store: Store, *, by_position: bool) -> NameMapping:
        """The mapping of one file, `by_position` or `by_name`. A name mapping that is not believed is reported."""
        found = self.by_position(stored, location) if by_position else self.by_name(stored, location)
        if self.misplaced_id is not None:
            reason = f"has no field ids, and the table's name mapping has id {self.misplaced_id} in another place than"
            store.report(Contradiction("name mapping", location, f"{reason} its schemas"))
        return found

    def by_position(self, stored: pa.Schema, location: str) -> NameMapping:
        """The mapping of one file whose columns are numbered from 1, and nested ones go by name.

        Raises:
            Unsupported: The names say that the columns are others, or the file has a column that is newer than some
                snapshot.
        """
        made = []
        top = {f.field_id: f for f in self.schema.fields}
        number_of = {f.name: f.field_id for f in self.schema.fields}
        for number, f in enumerate(stored, 1):
            if number_of.get(f.name, number) != number:
                problem = f"its column {number} has the name of column {number_of[f.name]}, {f.name!r}"
                raise _no_ids(location, problem)
            column = top.get(number)
            if column is not None:
                made.append(MappedField((f.name,), number, mapping_of(Schema(children(column.type))).fields))
        return self._checked(NameMapping(tuple(made)), stored, location)

    def by_name(self, stored: pa.Schema, location: str) -> NameMapping:
        """The mapping by the present names of columns.

        Raises:
            Unsupported: No column has a name of the file, a column of the file was renamed in the table since, or it is
                newer than some snapshot.
        """
        mapping = mapping_of(self.schema)
        former = {
            f.name: f.field_id for schema in self.others for f in schema.fields if f.field_id in self.schema.by_id
        }
        names = [f.name for f in stored if mapping.id_of(f.name) is None]
        renamed = [name for name in names if name in former]
        if renamed or (names and len(names) == len(stored)):
            raise _no_ids(location, f"no column of the table has the name of its column {(renamed or names)[0]!r}")
        return self._checked(mapping, stored, location)

    def _checked(self, mapping: NameMapping, stored: pa.Schema, location: str) -> NameMapping:
        given = pa.schema(_with_ids(tuple(stored), mapping, ()))
        for f, own in zip(given, stored, strict=True):
            top = field_id_of(f)
            ids = () if top is None else tuple(_ids(f))
            if None in ids:
                raise _no_ids(location, f"no column of the table has the nested names of its column {own.name!r}")
            if not self.settled.issuperset(i for i in ids if i is not None):
                raise _no_ids(location, f"its column {own.name!r} is newer than some snapshots")
        return mapping


def _ids(f: pa.Field) -> Iterator[int | None]:
    yield field_id_of(f)
    for child in child_fields(f.type):
        yield from _ids(child)


def _no_ids(location: str, problem: str) -> Unsupported:
    return Unsupported(
        f"{location} has no field ids, the table has no property {NAME_MAPPING.name}, and {problem}: set that property"
    )
