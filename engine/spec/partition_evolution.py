"""Partition spec changes (spec: "Partition Evolution").

v1 tables keep the position of every field, so a dropped field becomes `void`; v2 and later remove it. A field that some
earlier spec had (same sources, same transform) gets its old id again, so that its values stay comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from icebench.engine.errors import Invalid
from icebench.engine.spec.partitioning import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec, field_name
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.transforms import Bucket, Transform, Truncate, UnknownTransform, Void, parse_transform


@dataclass
class PartitionSpecUpdate:
    """Changes against `base`.

    Args:
        schema: The table's current schema.
        base: The spec to change, usually the default one.
        history: All specs of the table, for the reuse of field ids.
        last_partition_id: The highest partition field id ever assigned (999 when there was none).
        format_version: 1 replaces dropped fields by void ones.
    """

    schema: Schema
    base: PartitionSpec
    history: Sequence[PartitionSpec]
    last_partition_id: int
    format_version: int = 2
    _added: list[PartitionField] = field(default_factory=list)
    _removed: set[int] = field(default_factory=set)
    _renamed: dict[int, str] = field(default_factory=dict)

    def add_field(self, column: str, transform: Transform | str, *, name: str | None = None) -> PartitionSpecUpdate:
        """Add a field that partitions by a transform of a column.

        Args:
            column: Full name.
            transform: As an object or as text, such as ``"bucket[16]"``.
            name: Of the field; defaults to the usual one (``ts_day``), with the width of a bucket or truncation
                (``id_bucket_16``), as Iceberg Java names fields that are added to a spec.

        Raises:
            Invalid: The column or the transform is not known, or the spec has the field already.
        """
        if isinstance(transform, str):
            transform = parse_transform(transform)
        if not isinstance(transform, Transform):
            raise Invalid(f"{transform!r} is no transform, such as 'day' or 'bucket[16]'")
        if isinstance(transform, UnknownTransform):
            raise Invalid(f"cannot write with the unknown transform {transform}")
        source = self.schema.find(column)
        key = ((source.field_id,), transform)
        live = [f for f in self.base.fields if f.field_id not in self._removed] + self._added
        if any((f.source_ids, f.transform) == key for f in live):
            raise Invalid(f"the spec partitions {column!r} by {transform} already")
        restored = next((f for f in self.base.fields if f.field_id in self._removed and _key(f) == key), None)
        if restored is not None:
            self._removed.discard(restored.field_id)
            if name is not None:
                self._renamed[restored.field_id] = name
            return self
        # What was dropped in v1 is still there as void, under its id.
        held = {f.field_id for f in self.base.fields if self.format_version == 1 or f.field_id not in self._removed}
        former = [f for spec in self.history for f in spec.fields if f.field_id not in held]
        known = [f for f in former if _key(f) == key]
        if known:
            field_id = known[-1].field_id
            name = name or known[-1].name
        else:
            self.last_partition_id = max(self.last_partition_id, FIRST_PARTITION_FIELD_ID - 1) + 1
            field_id = self.last_partition_id
        made = PartitionField(
            source_ids=(source.field_id,),
            field_id=field_id,
            name=name or _name_with_width(column, transform),
            transform=transform,
        )
        PartitionSpec((made,)).check(self.schema, voids=True)
        self._added.append(made)
        return self

    def drop_field(self, name: str) -> PartitionSpecUpdate:
        """Stop partitioning by a field, given by its name in the spec."""
        found = self._find(name)
        if found.field_id in self._renamed:
            raise Invalid(f"cannot drop partition field {name!r}: this update renames it")
        self._removed.add(found.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> PartitionSpecUpdate:
        """Rename a partition field."""
        self._renamed[self._find(name).field_id] = new_name
        return self

    def apply(self) -> tuple[PartitionSpec, int]:
        """The new spec and the new last partition id.

        The spec has the id of an equal spec of the history, where there is one, else the next free id.
        """
        fields: list[PartitionField] = []
        for old in self.base.fields:
            if old.field_id in self._removed:
                if self.format_version == 1:
                    fields.append(replace(old, name=self._void_name(old), transform=Void()))
            elif isinstance(old.transform, Void):
                fields.append(replace(old, name=self._void_name(old)))
            else:
                fields.append(replace(old, name=self._renamed.get(old.field_id, old.name)))
        fields += self._added
        for known in self.history:
            if known.fields == tuple(fields):
                return known, self.last_partition_id
        spec = PartitionSpec(tuple(fields), max((s.spec_id for s in self.history), default=-1) + 1)
        spec.check(self.schema)
        spec.check_names(self.schema)
        return spec, self.last_partition_id

    def _void_name(self, old: PartitionField) -> str:
        """Rename a void field whose name a new field takes."""
        taken = {f.name for f in self._added} | set(self._renamed.values())
        return f"{old.name}_{old.field_id}" if old.name in taken else old.name

    def _find(self, name: str) -> PartitionField:
        found = next((f for f in self.base.fields if f.name == name), None)
        if found is None or found.field_id in self._removed or isinstance(found.transform, Void):
            names = ", ".join(f.name for f in self.base.fields if not isinstance(f.transform, Void)) or "none"
            raise Invalid(f"no partition field {name!r}; there are: {names}")
        return found


def _name_with_width(column: str, transform: Transform) -> str:
    name = field_name(column, transform)
    return f"{name}_{transform.width}" if isinstance(transform, Bucket | Truncate) else name


def _key(partition_field: PartitionField) -> tuple[tuple[int, ...], Transform]:
    return partition_field.source_ids, partition_field.transform
