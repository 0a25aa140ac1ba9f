"""The operations of actors: how each is drawn, how it is called, and what it does to rows.

What an operation does to rows is said here a second time, in a few lines and without files, commits or conflicts: that
is the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from icebench.engine.commit.committer import Identifier
from icebench.engine.spec.sorting import SortField, SortOrder
from icebench.engine.spec.transforms import Bucket, Identity
from icebench.engine.spec.types import LONG
from tests.simulation.process import RENAMED, TABLE, Step, arrow_rows
from tests.simulation.reading import Row
from tests.simulation.schedule import CatalogKind, Operation, RowValues, Value, Variant

K, V, P = 1, 2, 3
"""Field ids."""
KEYS = (0, 1, 4)
"""4 is no key of the table at first."""
_PARTITIONS: tuple[Value, ...] = (1.0, 2.0, float("nan"), None)

Values = frozenset[tuple[int, object]]


class Effect(NamedTuple):
    """What becomes of rows.

    Args:
        kept: Rows that stay as they are.
        changed: Rows that get other values and stay themselves.
        new: Rows that come, some of them perhaps in place of one of `replaced`.
        replaced: Rows whose ids may go on in new ones.
    """

    kept: list[Row]
    changed: list[tuple[Row, Values]]
    new: list[Values]
    replaced: list[Row]

    def is_nothing(self, rows: Sequence[Row]) -> bool:
        """Whether the rows stay as they are."""
        return len(self.kept) == len(rows) and not self.changed and not self.new


class Base(NamedTuple):
    """What an effect may depend on besides rows."""

    is_unpartitioned: bool
    partitions: frozenset[tuple[object, ...]]


@dataclass(frozen=True)
class Kind:
    """A kind of operation.

    Args:
        draw: Makes arguments.
        call: Calls the public API.
        effect: What it does to rows; None where it does nothing to them.
        group: ``rows``; ``stored``, the same rows in other files; ``refs``; ``pick``; ``shape``: schema, spec, order,
            version, properties; ``statistics``; ``forget``: expiry; ``files``: no commit; ``name``: made, renamed,
            dropped.
        needs: The least format version.
        catalogs: Those that can.
    """

    draw: Callable[[Drawing], Mapping[str, Any]]
    call: Callable[[Any, Step], object]
    effect: Callable[[Sequence[Row], Step, Base], Effect] | None = None
    group: str = "rows"
    needs: int = 1
    catalogs: tuple[CatalogKind, ...] = ("directory", "sql", "rest")

    def suits(self, variant: Variant) -> bool:
        """Whether a table has such operations."""
        return self.needs <= variant.format_version and variant.catalog in self.catalogs


@dataclass
class Drawing:
    """Chance, and what was drawn so far."""

    rng: random.Random
    variant: Variant
    branches: Sequence[str] = ("main",)
    keys: Sequence[int] = KEYS
    rows: int = 100

    def some_rows(self, count: int = 1, *, unique_keys: bool = False) -> tuple[RowValues, ...]:
        """Rows with numbers of their own."""
        keys = self.rng.sample(KEYS, count) if unique_keys else [self.rng.choice(self.keys) for _ in range(count)]
        self.rows += count
        return tuple((k, self.rows - i, self.rng.choice(_PARTITIONS)) for i, k in enumerate(keys))

    def filter(self) -> tuple[str, str, Value]:
        """A column, an operator, and a value."""
        rng = self.rng
        return rng.choice(
            (
                ("k", "=", rng.choice(self.keys)),
                ("k", "<", 2),
                ("k", "=", 4),
                ("p", "=", 1.0),
                ("p", "is nan", None),
                ("p", "is null", None),
                ("v", ">=", 100),
            )
        )

    def mode(self) -> str:
        """How rows go."""
        return (
            "copy-on-write" if self.variant.format_version == 1 else self.rng.choice(("copy-on-write", "merge-on-read"))
        )

    def branch(self) -> str:
        """A branch of those that this schedule writes to."""
        return self.rng.choice(self.branches)


def matches(row: Row, test: tuple[str, str, Value]) -> bool:
    """Whether a filter is true for a row."""
    name, operator, literal = test
    value: Any = dict(row.values).get({"k": K, "v": V, "p": P}[name])
    if operator == "is nan":
        return bool(value == "NaN")
    if operator == "is null":
        return value is None
    if value is None or value == "NaN":
        return False
    return bool({"=": value == literal, "<": value < literal, ">=": value >= literal}[operator])


def _text(test: tuple[str, str, Value]) -> str:
    return f"{test[0]} {test[1]}{'' if test[2] is None else f' {test[2]}'}"


def _common(step: Step) -> dict[str, Any]:
    return {"branch": step.operation.args.get("branch", "main"), "snapshot_properties": {"simulation": step.tag}}


def _split(rows: Sequence[Row], step: Step) -> tuple[list[Row], list[Row]]:
    test = step.operation.args["filter"]
    return [r for r in rows if not matches(r, test)], [r for r in rows if matches(r, test)]


# Changes of rows.


def _append(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.append(arrow_rows(args["rows"], target, step), wap_id=args.get("wap"), **_common(step))


def _append_batch(target: Any, step: Step) -> object:
    args = step.operation.args
    rows = arrow_rows(args["rows"], target, step)
    return target.append_batch(rows, stream_id="s", batch_id=args["batch"], **_common(step))


def _delete(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.delete(_text(args["filter"]), args["mode"], **_common(step))


def _update(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.update(_text(args["filter"]), {"v": args["v"]}, args["mode"], **_common(step))


def _update_effect(rows: Sequence[Row], step: Step, base: Base) -> Effect:
    kept, hit = _split(rows, step)
    changed = [(row, frozenset({**dict(row.values), V: step.operation.args["v"]}.items())) for row in hit]
    return Effect(kept, changed, [], [])


def _upsert(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.upsert(arrow_rows(args["rows"], target, step), ["k"], args["mode"], **_common(step))


def _upsert_effect(rows: Sequence[Row], step: Step, base: Base) -> Effect:
    keys = {dict(values)[K] for values in step.given}
    hit = [row for row in rows if dict(row.values)[K] in keys]
    return Effect([row for row in rows if dict(row.values)[K] not in keys], [], step.given, hit)


def _overwrite(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.overwrite(arrow_rows(args["rows"], target, step), _text(args["filter"]), **_common(step))


def _overwrite_partitions(target: Any, step: Step) -> object:
    return target.overwrite_partitions(arrow_rows(step.operation.args["rows"], target, step), **_common(step))


def _overwrite_partitions_effect(rows: Sequence[Row], step: Step, base: Base) -> Effect:
    kept = [] if base.is_unpartitioned else [row for row in rows if row.partition not in base.partitions]
    return Effect(kept, [], step.given, [])


def _keyed(target: Any, step: Step) -> object:
    args = step.operation.args
    stream = target.keyed_stream(args["on"], branch=args["branch"])
    rows = arrow_rows(args["rows"], target, step)
    for kind, at in args["changes"]:
        if kind == "update":
            stream.update(rows.slice(at, 1))
        else:
            stream.delete(rows.slice(at, 1).select(args["on"]))
    return stream.commit()


def _keyed_effect(rows: Sequence[Row], step: Step, base: Base) -> Effect:
    ids = tuple({"k": K, "p": P}[name] for name in step.operation.args["on"])

    def key(values: Values) -> tuple[object, ...]:
        return tuple(dict(values).get(i) for i in ids)

    written: dict[tuple[object, ...], Values | None] = {}
    for kind, at in step.operation.args["changes"]:
        written[key(step.given[at])] = step.given[at] if kind == "update" else None
    kept = [row for row in rows if key(row.values) not in written]
    return Effect(kept, [], [values for values in written.values() if values is not None], [])


def _draw_keyed(drawing: Drawing) -> Mapping[str, Any]:
    rng = drawing.rng
    rows = drawing.some_rows(rng.choice((1, 2)))
    changes = rng.choice((("delete",), ("update", "delete")))
    return {
        "on": ("k", "p") if drawing.variant.partitioning == "p" else ("k",),
        "rows": rows,
        "changes": tuple((rng.choice(changes), i) for i in range(len(rows))),
        "branch": drawing.branch(),
    }


# References.


def _picked(target: Any, step: Step) -> int | None:
    """The snapshot so many steps before main's head."""
    metadata = target.metadata
    at = metadata.current_snapshot_id
    for _ in range(step.operation.args["back"]):
        before = None if at is None else metadata.snapshot_by_id[at].parent_snapshot_id
        at = before if before in metadata.snapshot_by_id else at
    step.chosen = at
    return at


def _tag(target: Any, step: Step) -> object:
    back = step.operation.args["back"]
    chosen = _picked(target, step) if back else None
    return target.create_tag(step.operation.args["name"], snapshot_id=chosen)


def _branch(target: Any, step: Step) -> object:
    back = step.operation.args["back"]
    chosen = _picked(target, step) if back else None
    return target.create_branch(step.operation.args["name"], snapshot_id=chosen)


def _add_column(target: Any, step: Step) -> object:
    return target.update_schema(lambda s: s.add_column(step.operation.args["name"], LONG))


def _rename_column(target: Any, step: Step) -> object:
    last = target.metadata.schema.fields[-1].name
    if last in ("k", "v", "p"):
        return None
    return target.update_schema(lambda s: s.rename_column(last, step.operation.args["name"]))


def _drop_column(target: Any, step: Step) -> object:
    last = target.metadata.schema.fields[-1].name
    if last in ("k", "v", "p"):
        return None
    return target.update_schema(lambda s: s.drop_column(last))


def _evolve_spec(target: Any, step: Step) -> object:
    spec = target.metadata.spec
    if spec.is_unpartitioned:
        return target.update_spec(lambda s: s.add_field("k", Bucket(2)))
    return target.update_spec(lambda s: s.drop_field(spec.fields[0].name))


def _sort(target: Any, step: Step) -> object:
    return target.replace_sort_order(SortOrder(fields=(SortField(source_ids=(V,), transform=Identity()),), order_id=1))


# Maintenance.


def _rewrite(target: Any, step: Step) -> object:
    args = step.operation.args
    return target.maintenance.rewrite_data_files(
        args["strategy"],
        sort_order=["v"] if args["strategy"] == "sort" else None,
        rewrite_all=True,
        partial_progress=args["partial"],
        remove_dangling_deletes=args["dangling"],
    )


def _draw_rewrite(drawing: Drawing) -> Mapping[str, Any]:
    rng = drawing.rng
    return {
        "strategy": rng.choice(("binpack", "sort")),
        "partial": rng.random() < 0.3,
        "dangling": rng.random() < 0.3,
    }


def _cluster(target: Any, step: Step) -> object:
    return target.maintenance.cluster(partial_progress=step.operation.args["partial"])


def _rewrite_position_deletes(target: Any, step: Step) -> object:
    return target.maintenance.rewrite_position_deletes(rewrite_all=True)


def _convert_equality_deletes(target: Any, step: Step) -> object:
    return target.maintenance.convert_equality_deletes()


def _compute(compute: Callable[..., object], target: Any) -> object:
    """Statistics of main's head, often from those of its parent."""
    head = target.metadata.current_snapshot
    parent = None if head is None else head.parent_snapshot_id
    if parent is not None and parent in target.metadata.snapshot_by_id and parent % 4:
        compute(snapshot_id=parent)
    return compute()


def _expire(target: Any, step: Step) -> object:
    args = step.operation.args
    cut = target.world.now_ms - args["days"] * 86_400_000
    step.chosen = cut
    return target.maintenance.expire_snapshots(older_than=cut, retain_last=args["retain"])


def _cherry_pick(target: Any, step: Step) -> object:
    return target.cherry_pick(wap_id=step.operation.args["wap"])


def _rename(target: Any, step: Step) -> object:
    return target.rename(*ends_of(step.operation))


def ends_of(operation: Operation) -> tuple[Identifier, Identifier | None]:
    """The name that a table had, and the one that a rename gives it."""
    if operation.kind != "rename":
        return TABLE, None
    return (RENAMED, TABLE) if operation.args["back"] else (TABLE, RENAMED)


def _two(drawing: Drawing) -> Mapping[str, Any]:
    return {"rows": drawing.some_rows(drawing.rng.choice((1, 1, 2))), "branch": drawing.branch()}


KINDS: Mapping[str, Kind] = {
    "append": Kind(_two, _append, lambda rows, step, base: Effect(list(rows), [], step.given, [])),
    "stage": Kind(
        lambda d: {"rows": d.some_rows(1), "wap": f"w{d.rng.randrange(3)}"},
        _append,
        lambda rows, step, base: Effect(list(rows), [], step.given, []),
    ),
    "append_batch": Kind(
        lambda d: {**_two(d), "batch": d.rng.randrange(3)},
        _append_batch,
        lambda rows, step, base: Effect(list(rows), [], step.given, []),
    ),
    "delete": Kind(
        lambda d: {"filter": d.filter(), "mode": d.mode(), "branch": d.branch()},
        _delete,
        lambda rows, step, base: Effect(_split(rows, step)[0], [], [], []),
    ),
    "update": Kind(
        lambda d: {"filter": d.filter(), "v": d.rng.randrange(50), "mode": d.mode(), "branch": d.branch()},
        _update,
        _update_effect,
    ),
    "upsert": Kind(
        lambda d: {"rows": d.some_rows(2, unique_keys=True), "mode": d.mode(), "branch": d.branch()},
        _upsert,
        _upsert_effect,
    ),
    "overwrite": Kind(
        lambda d: {"rows": d.some_rows(1), "filter": d.filter(), "branch": d.branch()},
        _overwrite,
        lambda rows, step, base: Effect(_split(rows, step)[0], [], step.given, []),
    ),
    "overwrite_partitions": Kind(_two, _overwrite_partitions, _overwrite_partitions_effect),
    "keyed": Kind(_draw_keyed, _keyed, _keyed_effect, needs=2),
    "rewrite": Kind(_draw_rewrite, _rewrite, group="stored"),
    "cluster": Kind(_draw_rewrite, _cluster, group="stored"),
    "rewrite_position_deletes": Kind(_draw_rewrite, _rewrite_position_deletes, group="stored", needs=2),
    "convert_equality_deletes": Kind(_draw_rewrite, _convert_equality_deletes, group="stored", needs=2),
    "rewrite_manifests": Kind(
        lambda d: {"by_partition": d.rng.random() < 0.5},
        lambda target, step: target.maintenance.rewrite_manifests(by_partition=step.operation.args["by_partition"]),
        group="stored",
    ),
    "expire": Kind(
        lambda d: {"days": d.rng.choice((0, 0, 6)), "retain": d.rng.choice((1, 1, 2))}, _expire, group="forget"
    ),
    "remove_orphans": Kind(
        lambda d: {}, lambda target, step: target.maintenance.remove_orphan_files(dry_run=False), group="files"
    ),
    "tag": Kind(lambda d: {"name": d.rng.choice("xyz"), "back": d.rng.randrange(3)}, _tag, group="refs"),
    "branch": Kind(lambda d: {"name": d.rng.choice("bc"), "back": d.rng.randrange(3)}, _branch, group="refs"),
    "remove_ref": Kind(
        lambda d: {"name": d.rng.choice("xyb")},
        lambda target, step: target.remove_ref(step.operation.args["name"]),
        group="refs",
    ),
    "rollback": Kind(
        lambda d: {"back": d.rng.choice((1, 2))},
        lambda target, step: target.rollback(snapshot_id=_picked(target, step)),
        group="refs",
    ),
    "set_current": Kind(
        lambda d: {"back": d.rng.choice((1, 2))},
        lambda target, step: target.set_current_snapshot(_picked(target, step)),
        group="refs",
    ),
    "fast_forward": Kind(
        lambda d: dict(zip(("branch", "to"), d.rng.choice((("b", "main"), ("main", "b"))), strict=True)),
        lambda target, step: target.fast_forward(step.operation.args["branch"], step.operation.args["to"]),
        group="refs",
    ),
    "cherry_pick": Kind(lambda d: {"wap": f"w{d.rng.choice((0, 0, 1))}"}, _cherry_pick, group="pick"),
    "add_column": Kind(lambda d: {"name": d.rng.choice(("x1", "x2"))}, _add_column, group="shape"),
    "rename_column": Kind(lambda d: {"name": d.rng.choice(("y1", "y2"))}, _rename_column, group="shape"),
    "drop_column": Kind(lambda d: {}, _drop_column, group="shape"),
    "evolve_spec": Kind(lambda d: {}, _evolve_spec, group="shape"),
    "sort_order": Kind(lambda d: {}, _sort, group="shape"),
    "compute_table_stats": Kind(
        lambda d: {}, lambda target, step: _compute(target.maintenance.compute_table_stats, target), group="statistics"
    ),
    "compute_partition_stats": Kind(
        lambda d: {},
        lambda target, step: _compute(target.maintenance.compute_partition_stats, target),
        group="statistics",
    ),
    "set_properties": Kind(
        lambda d: {"value": str(d.rng.randrange(9))},
        lambda target, step: target.set_properties({"a": step.operation.args["value"]}),
        group="shape",
    ),
    "rename": Kind(lambda d: {"back": d.rng.random() < 0.3}, _rename, group="name", catalogs=("sql", "rest")),
    "drop": Kind(lambda d: {}, lambda target, step: target.drop(), group="name", catalogs=("sql", "rest")),
    "create": Kind(lambda d: {}, lambda target, step: target.create(), group="name", catalogs=("sql",)),
    "upgrade": Kind(
        lambda d: {}, lambda target, step: target.upgrade_format(target.metadata.format_version + 1), group="shape"
    ),
}
