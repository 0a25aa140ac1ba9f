"""JSON form of partition specs and sort orders (spec appendix C: "Partition Specs", "Sort Orders")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, cast

from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.spec.partitioning import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import parse_transform


def _source_ids(node: JsonObject) -> tuple[int, ...]:
    if not node.has("source-ids"):
        return (node.int32("source-id"),)
    ids = node.int32s("source-ids")
    if not ids:
        raise node.error("source-ids", "is empty")
    return ids


def _source_ids_to_json(source_ids: Sequence[int]) -> dict[str, Any]:
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def partition_fields_from_json(nodes: Iterable[JsonObject]) -> tuple[PartitionField, ...]:
    """The fields of a spec. Field ids, which old v1 writers left out, count up from 1000.

    Raises:
        CorruptTable: A field is malformed, an id or a name is used twice, or only some fields have ids.
    """
    fields: list[PartitionField] = []
    explicit = 0
    ids: set[int] = set()
    names: set[str] = set()
    for index, node in enumerate(nodes):
        field_id = node.int32_or_none("field-id")
        explicit += field_id is not None
        if explicit not in (0, index + 1):
            raise node.error("field-id", "some fields of the spec have ids and others do not")
        made = PartitionField(
            source_ids=_source_ids(node),
            field_id=FIRST_PARTITION_FIELD_ID + index if field_id is None else field_id,
            name=node.text("name"),
            transform=parse_transform(node.text("transform")),
        )
        if made.field_id in ids:
            raise node.error("field-id", f"{made.field_id} is used twice in the spec")
        if made.name in names:
            raise node.error("name", f"{made.name!r} is used twice in the spec")
        ids.add(made.field_id)
        names.add(made.name)
        fields.append(made)
    return tuple(fields)


def partition_spec_from_json(node: JsonObject) -> PartitionSpec:
    """A full spec object; raises CorruptTable."""
    return PartitionSpec(partition_fields_from_json(node.children("fields")), node.int32("spec-id"))


def partition_fields_to_json(spec: PartitionSpec) -> list[dict[str, Any]]:
    """The JSON-ready form of only the fields, as manifests and v1 metadata carry them."""
    return [
        {"name": f.name, "transform": str(f.transform), **_source_ids_to_json(f.source_ids), "field-id": f.field_id}
        for f in spec.fields
    ]


def partition_spec_to_json(spec: PartitionSpec) -> dict[str, Any]:
    """The JSON-ready form of a spec with its id."""
    return {"spec-id": spec.spec_id, "fields": partition_fields_to_json(spec)}


def _one_of(node: JsonObject, key: str, allowed: tuple[str, ...]) -> str:
    value = node.text(key).lower()
    if value not in allowed:
        raise node.error(key, f"{value!r} is not one of {', '.join(allowed)}")
    return value


def sort_order_from_json(node: JsonObject) -> SortOrder:
    """A sort order object; raises CorruptTable."""
    fields = tuple(
        SortField(
            source_ids=_source_ids(child),
            transform=parse_transform(child.text("transform")),
            direction=cast("Literal['asc', 'desc']", _one_of(child, "direction", ("asc", "desc"))),
            null_order=cast(
                "Literal['nulls-first', 'nulls-last']", _one_of(child, "null-order", ("nulls-first", "nulls-last"))
            ),
        )
        for child in node.children("fields")
    )
    return SortOrder(fields, node.int32("order-id"))


def sort_order_to_json(order: SortOrder) -> dict[str, Any]:
    """The JSON-ready form of a sort order."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "transform": str(f.transform),
                **_source_ids_to_json(f.source_ids),
                "direction": f.direction,
                "null-order": f.null_order,
            }
            for f in order.fields
        ],
    }
