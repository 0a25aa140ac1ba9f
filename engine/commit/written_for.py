"""What the files of a change were written for, and whether a table is still that."""

from __future__ import annotations

from dataclasses import dataclass

from icebench.engine.errors import ValidationFailed
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.sorting import SortOrder


@dataclass(frozen=True, kw_only=True)
class WrittenFor:
    """The definition of the table that data files were written for: they know their columns and their order by ids.

    Args:
        schema: Their columns.
        own_field_ids: Columns among them that the same transaction adds; they may get other ids when it is committed.
        own_orders: Sort orders likewise.
        may_lose_columns: Values of a column that was dropped may be lost even if another one has its name now.
    """

    schema: Schema
    own_field_ids: frozenset[int] = frozenset()
    own_orders: tuple[SortOrder, ...] = ()
    may_lose_columns: bool = False

    def check(self, base: TableMetadata) -> None:
        """Check that the files' rows keep their values in this table, and can be read.

        Concurrent commits may add, rename and drop columns; values of a dropped column are dropped with it.

        Raises:
            ValidationFailed: A column has the name of a written one that was dropped, a required one has no value for
                the rows or may have null, or the transaction's own columns or orders have other ids by now.
        """
        again = "after rows were written for it; run the operation again"
        if any(order not in base.sort_orders for order in self.own_orders):
            raise ValidationFailed(f"another commit changed the sort order {again}")
        if self.schema.fields == base.schema.fields:
            return
        written, now = self.schema, base.schema
        for field_id, name in () if self.may_lose_columns else written.name_of.items():
            is_own = field_id in self.own_field_ids
            if now.name_of.get(field_id) != name if is_own else field_id not in now.by_id and name in now.id_of:
                raise ValidationFailed(f"another commit gave column {name!r} another id {again}")
        for field_id in now.by_id.keys() & written.by_id.keys():
            if now.by_id[field_id].required and not written.by_id[field_id].required:
                raise ValidationFailed(f"another commit made column {now.name_of[field_id]!r} required {again}")
        for field_id in now.by_id.keys() - written.by_id.keys():
            field, parent = now.by_id[field_id], now.parent_of.get(field_id)
            # Fields of a struct that the rows lack are not read: the struct is null.
            if field.required and field.initial_default is None and (parent is None or parent in written.by_id):
                raise ValidationFailed(f"another commit added the required column {now.name_of[field_id]!r} {again}")
