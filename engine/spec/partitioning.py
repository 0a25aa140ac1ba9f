"""Partition specs (spec: "Partitioning", "Partition Evolution")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from icebench.engine.display import html_table, printable
from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.texts import check_text
from icebench.engine.spec.transforms import Identity, Transform, UnknownTransform, Void, parse_transform
from icebench.engine.spec.types import DATE, UNKNOWN, NestedField, PrimitiveType, StructType
from icebench.engine.spec.values import Value

Partition: TypeAlias = tuple[Value | None, ...]
"""A partition tuple: one internal value per field of its spec, in the spec's order."""
PartitionKey: TypeAlias = tuple[object, ...]
"""A partition in its comparable form; see `partition_key`."""

FIRST_PARTITION_FIELD_ID = 1000
"""Partition field ids start here. They are an id space of their own: a table with more than 1,000 columns has column
ids of the same value, so a partition id is never looked up among columns, nor vice versa."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """One partition field. `source_ids` has more than one id only for multi-argument transforms (v3)."""

    source_ids: tuple[int, ...]
    field_id: int
    name: str
    transform: Transform

    @property
    def source_id(self) -> int:
        """The only (or first) source column id."""
        return self.source_ids[0]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """An ordered tuple of partition fields with an id; no fields means unpartitioned."""

    fields: tuple[PartitionField, ...] = ()
    spec_id: int = 0

    def __call__(self) -> PartitionSpec:
        """Itself, so that a property of a table may be called, as in PyIceberg."""
        return self

    def __repr__(self) -> str:
        fields = [f"{printable(f.name)} = {_applied(f)}" for f in self.fields]
        return f"PartitionSpec({self.spec_id}, {', '.join(fields) or 'unpartitioned'})"

    def _repr_html_(self) -> str:
        rows = [(str(f.field_id), f.name, _applied(f)) for f in self.fields]
        return html_table(("id", f"field of spec {self.spec_id}", "transform(column id)"), rows)

    @property
    def is_unpartitioned(self) -> bool:
        """No field, or void fields only."""
        return all(isinstance(f.transform, Void) for f in self.fields)

    @property
    def has_global_deletes(self) -> bool:
        """Whether its equality deletes apply to data files of every spec and partition (spec: "Scan Planning")."""
        return self.is_unpartitioned

    def partition_type(self, schema: Schema, former: Sequence[Schema] = ()) -> StructType:
        """The struct of partition tuples.

        Args:
            schema: Has the source columns.
            former: All schemas of the table, oldest first: a dropped source column has the last type that it had. If
                no schema has the column, the field's type is unknown.
        """
        return StructType(
            tuple(
                NestedField(field_id=f.field_id, name=f.name, type=_result_type(f, schema, former), required=False)
                for f in self.fields
            )
        )

    def check(self, schema: Schema, *, voids: bool = False) -> None:
        """Raise Invalid where two fields have one id or name, or a source is missing, inside a list or map, or of a
        type that the transform does not take.

        Void fields that a table has, such as those that were dropped in format version 1, may be of any source or none;
        `voids` checks new ones.
        """
        names: set[str] = set()
        ids: set[int] = set()
        for f in self.fields:
            if f.field_id in ids:
                raise Invalid(f"partition field id {f.field_id} is used twice")
            ids.add(f.field_id)
            if f.name in names:
                raise Invalid(f"partition name {f.name!r} is used twice")
            names.add(f.name)
            if isinstance(f.transform, Void) and not voids:
                continue
            for source_id in f.source_ids:
                source = schema.row_primitive(source_id)
                if not f.transform.accepts(source):
                    raise Invalid(f"cannot partition {schema.name_of[source_id]!r} of type {source} by {f.transform}")

    def check_names(self, schema: Schema) -> None:
        """Raise Invalid where a field has no name, or the name of a column other than its own identity source, as
        Iceberg Java does for new specs. Void fields keep the names that they had."""
        for f in self.fields:
            check_text("the name of a partition field", f.name)
            if not f.name:
                raise Invalid("a partition field needs a name: Iceberg Java opens no table with an empty one")
            same_named = schema.id_of.get(f.name)
            is_own = isinstance(f.transform, Identity) and same_named == f.source_id
            if same_named is not None and not is_own and not isinstance(f.transform, Void):
                raise Invalid(f"partition field {f.name!r} has the name of a column; give it another name")


def check_kept_names(specs: Iterable[PartitionSpec], schema: Schema) -> None:
    """Raise Invalid where a column of a new schema would have the name of another column's partition field.

    Iceberg Java binds every spec of a table, void fields too, to the current schema as it opens it, and refuses such a
    table; a field whose source was dropped may share its name.
    """
    for spec in specs:
        for f in spec.fields:
            same_named = schema.id_of.get(f.name)
            sources = [each for each in f.source_ids if each in schema.by_id]
            if same_named is not None and sources and same_named not in sources:
                raise Invalid(
                    f"column {f.name!r} would have the name of a partition field of spec {spec.spec_id}, and Iceberg "
                    "Java would not open the table; give it another name"
                )


def _applied(field: PartitionField) -> str:
    return f"{printable(field.transform)}({', '.join(map(str, field.source_ids))})"


def partition_key(spec_id: int, partition: Partition) -> PartitionKey:
    """A partition in hashable form; equal exactly where partitions are (spec: "Scan Planning", note 3).

    Floats are equal by their bits, with one NaN: -0.0 and 0.0 are two partitions. Python compares both the other way
    round, so partition tuples must not be compared directly.
    """
    for value in partition:
        if isinstance(value, float):
            return (spec_id, *map(_comparable, partition))
    return (spec_id, *partition)


def _comparable(value: Value | None) -> object:
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "NaN"
    return "-0.0" if value == 0 and math.copysign(1, value) < 0 else value


def check_promotions(specs: Iterable[PartitionSpec], old: Schema, new: Schema) -> None:
    """Raise Invalid where a new type of a partition source changes the values of its transform (spec: "Schema
    Evolution").

    Only the promotion from date to timestamp does so; all others keep the numbers.
    """
    for f in (f for spec in specs for f in spec.fields if f.transform.name not in _SAME_FOR_DATE_AND_TIMESTAMP):
        for source_id in f.source_ids:
            was, becomes = old.by_id.get(source_id), new.by_id.get(source_id)
            if was is not None and becomes is not None and was.type == DATE != becomes.type:
                raise Invalid(
                    f"cannot change column {old.name_of[source_id]!r} from date to {becomes.type}: partition field "
                    f"{f.name!r} has other values then"
                )


@dataclass(frozen=True, slots=True)
class PlannedPartitions:
    """A struct that holds the partition tuples of all specs: a field for each id, and one for each type where fields of
    format version 1 share an id, in the order of first use.

    Attributes:
        type: The struct. The newest spec (highest id) names a field; a field that became void keeps the type it had
            before. Where several fields have one name, all but the first get a suffix: the id of that spec.
        places: Spec id -> the places in the struct of the spec's fields, in their order, and the fields.
    """

    type: StructType
    places: Mapping[int, Mapping[int, PartitionField]]

    @classmethod
    def of(cls, specs: Iterable[PartitionSpec], schema: Schema, former: Sequence[Schema] = ()) -> PlannedPartitions:
        """`schema` and `former` are those of `PartitionSpec.partition_type`."""
        fields: list[NestedField] = []
        named_by: list[int] = []
        only_void: set[int] = set()
        places: dict[int, dict[int, PartitionField]] = {}
        for spec in sorted(specs, key=lambda s: s.spec_id):
            own = places[spec.spec_id] = {}
            for made, f in zip(spec.partition_type(schema, former).fields, spec.fields, strict=True):
                is_void = isinstance(f.transform, Void)
                known = [place for place, each in enumerate(fields) if each.field_id == f.field_id]
                same = [p for p in known if is_void or p in only_void or fields[p].type == made.type]
                place = same[-1] if same else len(fields)
                type_ = fields[place].type if is_void and same else made.type
                if is_void and not same:
                    only_void.add(place)
                elif not is_void:
                    only_void.discard(place)
                fields[place : place + 1] = [replace(made, type=type_)]
                named_by[place : place + 1] = [spec.spec_id]
                own[place] = f
        taken = {each.name for each in fields}
        unique: dict[str, NestedField] = {}
        for each, spec_id in zip(fields, named_by, strict=True):
            name = each.name
            while name in unique or (name != each.name and name in taken):
                name = f"{name}_{spec_id}"
            unique[name] = replace(each, name=name)
        return cls(StructType(tuple(unique.values())), places)


def common_partition_type(specs: Sequence[PartitionSpec], schema: Schema, former: Sequence[Schema] = ()) -> StructType:
    """One struct that holds the partition tuples of all these specs, with one field for each id; see
    `PlannedPartitions`.

    Raises:
        Unsupported: Fields that share an id, as they may in format version 1, have different columns or transforms, as
            in Iceberg Java.
    """
    known: dict[int, PartitionField] = {}
    for f in (f for spec in sorted(specs, key=lambda s: s.spec_id) for f in spec.fields):
        other = known.setdefault(f.field_id, f) if not isinstance(f.transform, Void) else f
        if _applied(f) != _applied(other):
            both = f"{other.name!r} = {_applied(other)} and {f.name!r} = {_applied(f)}"
            raise Unsupported(f"partition fields that share the id {f.field_id}: {both}")
    return PlannedPartitions.of(specs, schema, former).type


def common_field_ids(specs: Iterable[PartitionSpec]) -> list[int]:
    """The ids of the fields of `common_partition_type`, in its order."""
    return list(dict.fromkeys(f.field_id for spec in sorted(specs, key=lambda s: s.spec_id) for f in spec.fields))


def has_known_values(spec: PartitionSpec, schema: Schema, former: Sequence[Schema] = ()) -> bool:
    """Whether the types of all partition values are known, so that they can be read. A void field needs none; a source
    of type unknown is known to be null. Arguments as for `PartitionSpec.partition_type`."""
    return all(isinstance(f.transform, Void) or _source_type(f, schema, former) is not None for f in spec.fields)


def untyped_fields(specs: Iterable[PartitionSpec]) -> frozenset[int]:
    """Ids of partition fields with an unknown transform: their values may be of any type."""
    return frozenset(f.field_id for spec in specs for f in spec.fields if isinstance(f.transform, UnknownTransform))


def _result_type(partition_field: PartitionField, schema: Schema, former: Sequence[Schema]) -> PrimitiveType:
    source = _source_type(partition_field, schema, former)
    return UNKNOWN if source is None else partition_field.transform.result_type(source)


def _source_type(field: PartitionField, schema: Schema, former: Sequence[Schema]) -> PrimitiveType | None:
    found = next((each for each in (schema, *reversed(former)) if field.source_id in each.by_id), None)
    source = None if found is None else found.by_id[field.source_id].type
    return source if isinstance(source, PrimitiveType) else None


_SAME_FOR_DATE_AND_TIMESTAMP = frozenset({"year", "month", "day", "void"})
UNPARTITIONED = PartitionSpec()


def field_name(column: str, transform: Transform) -> str:
    """The usual name of a partition field: ``ts_day``, ``id_bucket``, and the column's own for identity."""
    suffix = {"identity": "", "truncate": "_trunc", "void": "_null"}.get(transform.name, f"_{transform.name}")
    return column + suffix


def partition_spec(schema: Schema, fields: Iterable[tuple[str, Transform | str]], *, spec_id: int = 0) -> PartitionSpec:
    """A new table's spec from ``(column, transform)`` pairs, with the usual names (``day`` of ``ts`` is ``ts_day``).

    Raises:
        Invalid: A column does not exist, or the spec does not suit the schema (spec, "Partition Transforms").
    """
    made = []
    for index, pair in enumerate(fields):
        column, transform = _column_and_transform(pair)
        source = schema.find(column)
        made.append(
            PartitionField(
                source_ids=(source.field_id,),
                field_id=FIRST_PARTITION_FIELD_ID + index,
                name=field_name(column, transform),
                transform=transform,
            )
        )
    spec = PartitionSpec(tuple(made), spec_id)
    spec.check(schema, voids=True)
    return spec


def _column_and_transform(pair: Any) -> tuple[str, Transform]:  # noqa: ANN401 - what a user gives
    match pair:
        case (str() as column, str() as transform):
            return column, parse_transform(transform)
        case (str() as column, Transform() as transform):
            return column, transform
    raise Invalid(f"a partition field is a column and a transform, such as ('ts', 'day'), not {pair!r}")
