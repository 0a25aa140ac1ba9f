"""PyIceberg makes the changes of a history."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import PrimitiveType

import icebench
from icebench.engine.codec.metadata_json.schema import type_to_json
from icebench.engine.spec.types import Type
from tests.interop.histories import language as lang
from tests.interop.histories.rows_as_arrow import arrow_rows, imported_file


def pyiceberg_type(type_: Type) -> PrimitiveType:
    """A primitive type as PyIceberg has it."""
    return PrimitiveType.model_validate_json(json.dumps(type_to_json(type_)))


@dataclass
class PyIceberg:
    """Args:
    catalog: The catalog that all share.
    ours: Our handle, for the schema of rows.
    ids: Label -> snapshot id.
    """

    catalog: Catalog
    ours: icebench.Table
    ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(self.ours.name)

    def perform(self, change: lang.Change) -> None:
        with warnings.catch_warnings():
            # It says so when it copies on write though merge-on-read was asked for, and when a delete matches nothing.
            warnings.simplefilter("ignore")
            self._perform(change, self.table)

    def _perform(self, change: lang.Change, table: Table) -> None:
        schema = self.ours.refresh().metadata.schema
        match change:
            case lang.Append(rows, branch, None):
                table.append(arrow_rows(rows, schema), branch=branch)
            case lang.Overwrite(rows, None, branch):
                table.overwrite(arrow_rows(rows, schema), branch=branch)
            case lang.Overwrite(rows, where, branch) if where is not None:
                table.overwrite(arrow_rows(rows, schema), overwrite_filter=where.text, branch=branch)
            case lang.OverwritePartitions(rows):
                table.dynamic_partition_overwrite(arrow_rows(rows, schema))
            case lang.Delete(where, branch):
                table.delete(where.text, branch=branch)
            case lang.Upsert(rows, on, branch):
                table.upsert(arrow_rows(rows, schema), join_cols=list(on), branch=branch)
            case lang.ImportFile(rows):
                table.add_files([str(imported_file(rows, schema, self.ours.location))])
            case lang.Transaction(changes):
                self._in_one(changes, table)
            case _:
                self._evolved(change, table)

    def _in_one(self, changes, table: Table) -> None:
        schema = self.ours.metadata.schema
        with table.transaction() as transaction:
            for change in changes:
                match change:
                    case lang.Append(rows):
                        transaction.append(arrow_rows(rows, schema))
                    case lang.Delete(where):
                        transaction.delete(where.text)
                    case lang.SetProperties(values):
                        transaction.set_properties(dict(values))
                    case _:
                        raise NotImplementedError(f"PyIceberg does not make {change} in a transaction")

    def _evolved(self, change: lang.Change, table: Table) -> None:
        match change:
            case lang.AddField(column, transform, name):
                table.update_spec().add_field(column, parse_transform(transform), name).commit()
            case lang.DropField(name):
                table.update_spec().remove_field(name).commit()
            case lang.RenameField(name, new):
                table.update_spec().rename_field(name, new).commit()
            case lang.SetProperties(values):
                table.transaction().set_properties(dict(values)).commit_transaction()
            case lang.Upgrade(version):
                table.transaction().upgrade_table_version(version).commit_transaction()  # type: ignore[arg-type]
            case lang.Branch(name, label):
                table.manage_snapshots().create_branch(self._id(label, table), name).commit()
            case lang.Tag(name, label):
                table.manage_snapshots().create_tag(self._id(label, table), name).commit()
            case lang.DropRef(name):
                remove = table.manage_snapshots()
                (
                    remove.remove_tag(name)
                    if table.refs()[name].snapshot_ref_type == "tag"
                    else remove.remove_branch(name)
                ).commit()
            case lang.SetCurrent(label):
                table.manage_snapshots().set_current_snapshot(self.ids[label]).commit()
            case lang.Rollback(label):
                table.manage_snapshots().rollback_to_snapshot(self.ids[label]).commit()
            case _:
                self._edited_schema(change, table)

    def _edited_schema(self, change: lang.Change, table: Table) -> None:
        with table.update_schema() as update:
            match change:
                case lang.AddColumn(path, type_, None):
                    update.add_column(tuple(path.split(".")), pyiceberg_type(type_))
                case lang.DropColumn(path):
                    update.delete_column(tuple(path.split(".")))
                case lang.RenameColumn(path, new):
                    update.rename_column(tuple(path.split(".")), new)
                case lang.Promote(path, type_):
                    update.update_column(tuple(path.split(".")), field_type=pyiceberg_type(type_))
                case lang.Move(path, None):
                    update.move_first(path)
                case lang.Move(path, after) if after is not None:
                    update.move_after(path, after)
                case _:
                    raise NotImplementedError(f"PyIceberg does not make {change}")

    def _id(self, label: str | None, table: Table) -> int:
        if label is not None:
            return self.ids[label]
        head = table.current_snapshot()
        assert head is not None
        return head.snapshot_id
