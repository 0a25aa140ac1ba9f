"""Our engine makes the changes of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import icebench
from icebench.engine.maintenance.rewrite_data_files import Strategy
from icebench.engine.operations.metadata_operations import MetadataOperations
from icebench.engine.operations.row_operations import RowOperations
from icebench.engine.operations.transaction import TableTransaction
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.types import PrimitiveType
from tests.interop.histories import language as lang
from tests.interop.histories.rows_as_arrow import arrow_rows, internal_value


@dataclass
class Ours:
    """Args:
    table: The handle; refreshed before each change.
    ids: Label -> snapshot id.
    """

    table: icebench.Table
    ids: Mapping[str, int] = field(default_factory=dict)

    def perform(self, change: lang.Change) -> None:
        self.table.refresh()
        if isinstance(change, lang.Transaction):
            with self.table.transaction() as transaction:
                for each in change.changes:
                    self._perform(each, transaction)
        else:
            self._perform(change, self.table)
        self.table.refresh()

    def _perform(self, change: lang.Change, table: icebench.Table | TableTransaction) -> None:
        if not self._changed_rows(change, table):
            self._evolved(change, table)

    def _changed_rows(self, change: lang.Change, table: RowOperations) -> bool:
        schema = table.metadata.schema if isinstance(table, icebench.Table | TableTransaction) else None
        assert schema is not None
        match change:
            case lang.Append(rows, branch, wap):
                table.append(arrow_rows(rows, schema), branch=branch, wap_id=wap)
            case lang.Overwrite(rows, where, branch):
                table.overwrite(arrow_rows(rows, schema), None if where is None else where.text, branch=branch)
            case lang.OverwritePartitions(rows):
                table.overwrite_partitions(arrow_rows(rows, schema))
            case lang.Delete(where, branch):
                assert table.delete(where.text, branch=branch) is not None
            case lang.Update(where, values, branch):
                assert table.update(where.text, values, branch=branch) is not None
            case lang.Upsert(rows, on, branch):
                table.upsert(arrow_rows(rows, schema), on, branch=branch)
            case lang.Stream(changes, on):
                stream = table.keyed_stream(on)
                takes = {"insert": stream.insert, "update": stream.update, "delete": stream.delete}
                for kind, row in changes:
                    takes[kind](arrow_rows([row], schema))
                stream.commit()
            case _:
                return False
        return True

    def _evolved(self, change: lang.Change, table: MetadataOperations) -> None:
        match change:
            case lang.AddField(column, transform, name):
                table.update_spec(lambda s: s.add_field(column, icebench.parse_transform(transform), name=name))
            case lang.DropField(gone):
                table.update_spec(lambda s: s.drop_field(gone))
            case lang.RenameField(old, new):
                table.update_spec(lambda s: s.rename_field(old, new))
            case lang.Sort(keys):
                table.replace_sort_order(self._order(keys))
            case lang.SetProperties(values):
                table.set_properties(values)
            case lang.Upgrade(version):
                table.upgrade_format(version)
            case lang.RewriteManifests():
                self.table.maintenance.rewrite_manifests()
            case lang.RewriteData(zorder):
                strategy: Strategy = "zorder" if zorder else "binpack"
                self.table.maintenance.rewrite_data_files(
                    strategy, zorder_by=zorder, rewrite_all=True, remove_dangling_deletes=True
                )
            case lang.RewritePositionDeletes():
                self.table.maintenance.rewrite_position_deletes(rewrite_all=True)
            case lang.ConvertEqualityDeletes():
                self.table.maintenance.convert_equality_deletes()
            case lang.Expire(keep):
                self.table.maintenance.expire_snapshots(older_than="2999-01-01T00:00:00Z", retain_last=keep)
            case _:
                self._moved_refs(change, table)

    def _moved_refs(self, change: lang.Change, table: MetadataOperations) -> None:
        match change:
            case lang.Branch(name, label):
                table.create_branch(name, snapshot_id=self._id(label))
            case lang.Tag(name, label):
                table.create_tag(name, snapshot_id=self._id(label))
            case lang.DropRef(name):
                table.remove_ref(name)
            case lang.FastForward(branch, to):
                table.fast_forward(branch, to)
            case lang.SetCurrent(label):
                table.set_current_snapshot(self.ids[label])
            case lang.Rollback(label):
                table.rollback(snapshot_id=self.ids[label])
            case lang.Publish(wap):
                table.cherry_pick(wap_id=wap)
            case _:
                self._edited_schema(change, table)

    def _edited_schema(self, change: lang.Change, table: MetadataOperations) -> None:
        match change:
            case lang.AddColumn(path, type_, default):
                parent, _, name = path.rpartition(".")
                value = None if default is None else internal_value(type_, default)
                table.update_schema(lambda s: s.add_column(name, type_, parent=parent or None, default=value))
            case lang.DropColumn(path):
                table.update_schema(lambda s: s.drop_column(path))
            case lang.RenameColumn(path, new):
                table.update_schema(lambda s: s.rename_column(path, new))
            case lang.Promote(path, type_):
                assert isinstance(type_, PrimitiveType)
                wider = type_
                table.update_schema(lambda s: s.promote_column(path, wider))
            case lang.Move(path, after):
                table.update_schema(lambda s: s.move_first(path) if after is None else s.move_after(path, after))
            case lang.WriteDefault(path, value):
                internal = internal_value(self.table.metadata.schema.find(path).type, value)
                table.update_schema(lambda s: s.set_write_default(path, internal))
            case _:
                raise NotImplementedError(f"our engine does not make {change}")

    def _id(self, label: str | None) -> int | None:
        return None if label is None else self.ids[label]

    def _order(self, keys) -> SortOrder:
        schema = self.table.metadata.schema
        return SortOrder(
            tuple(
                SortField(
                    source_ids=(schema.find(column).field_id,),
                    transform=icebench.parse_transform("identity"),
                    direction=direction,
                    null_order=null_order,
                )
                for column, direction, null_order in keys
            ),
            order_id=1,
        )
