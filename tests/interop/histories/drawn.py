"""Histories of chance: each step is drawn from what the table can take, and from the engines that can make it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import icebench
from icebench.engine.spec.types import Type
from tests.interop.histories.filters import Column, Row, Where, col
from tests.interop.histories.language import (
    AddColumn,
    AddField,
    Append,
    Branch,
    Change,
    ConvertEqualityDeletes,
    Delete,
    DeleteKeys,
    DropColumn,
    DropField,
    Engine,
    Expire,
    History,
    Move,
    Overwrite,
    Promote,
    RenameColumn,
    RenameField,
    RewriteData,
    RewriteManifests,
    RewritePositionDeletes,
    SetProperties,
    Sort,
    Step,
    Stream,
    Tag,
    Update,
    Upgrade,
    Upsert,
)
from tests.interop.histories.model import Model
from tests.interop.histories.shapes import ON_READ, ON_WRITE, PLAIN

ALL: tuple[Engine, ...] = ("ours", "java", "pyiceberg")
BOTH: tuple[Engine, ...] = ("ours", "java")
OURS: tuple[Engine, ...] = ("ours",)
JAVA: tuple[Engine, ...] = ("java",)
VALUES: dict[str, list[Any]] = {
    "int": [None, 0, 7, -3, 2**31 - 1],
    "long": [None, 0, -7, 2**40, -(2**63)],
    "string": [None, "", "a", "b", "ccc", "čaj", "a'b"],
    "double": [None, 0.5, -0.0, float("nan"), float("inf"), 1e300],
    "decimal(9, 2)": [None, Decimal("0.00"), Decimal("-1.25"), Decimal("9999999.99")],
    "decimal(20, 2)": [None, Decimal("0.01"), Decimal("123456789012345678.90")],
    "boolean": [None, True, False],
    "date": [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
}
ADDED: list[Type] = [
    icebench.LONG,
    icebench.INT,
    icebench.STRING,
    icebench.DOUBLE,
    icebench.BOOLEAN,
    icebench.DATE,
    icebench.DecimalType(9, 2),
]
Draw = tuple[Change, tuple[Engine, ...]]


@dataclass
class Drawing:
    """A history as far as it is drawn.

    Args:
        rng: Where chance comes from.
        version: The table's format version, which may rise.
        keyed: Whether there are deletes by key, which PyIceberg neither reads nor writes: it takes no part.
    """

    rng: Random
    version: int
    keyed: bool
    types: dict[str, Type] = field(default_factory=lambda: dict(zip(PLAIN, COLUMNS, strict=True)))
    fields: dict[str, tuple[str, str]] = field(default_factory=dict)
    was_partitioned: bool = False
    was_evolved: bool = False
    has_void: bool = False
    was_field_renamed: bool = False
    next_id: int = 0
    names: int = 0

    def __post_init__(self) -> None:
        self.model = Model(tuple(PLAIN))
        self.steps: list[Step] = []

    @property
    def suits_pyiceberg(self) -> bool:
        """Whether PyIceberg writes the table: none of version 3, and none with two partition fields of a column, which
        it finds redundant."""
        sources = [source for source, _ in self.fields.values()]
        return self.version < 3 and not self.keyed and not self.has_void and len(sources) == len(set(sources))

    # ---- steps ---------------------------------------------------------------------------------------------------

    def draw(self) -> Step:
        """The next step, which the model has taken."""
        while True:
            kinds, weights = zip(*self._kinds(), strict=True)
            drawn = self.rng.choices(kinds, weights)[0]()
            if drawn is not None:
                break
        change, engines = drawn
        able = [e for e in engines if e != "pyiceberg" or self.suits_pyiceberg]
        change.apply(self.model)
        return Step(self.rng.choice(able), change)

    def _kinds(self) -> list[tuple[Callable[[], Draw | None], float]]:
        kinds: list[tuple[Callable[[], Draw | None], float]] = [
            (self._append, 5),
            (self._delete, 4),
            (self._update, 3),
            (self._upsert, 2),
            (self._overwrite, 1),
            (self._column, 2),
            (self._field, 1.5),
            (self._layout, 4),
            (self._reference, 1),
            (self._upgrade, 0.3),
        ]
        return [*kinds, (self._by_key, 4)] if self.keyed and self.version >= 2 else kinds

    # ---- rows ----------------------------------------------------------------------------------------------------

    def _row(self, id: int) -> Row:
        return {"id": id} | {name: self._value(type_) for name, type_ in self.types.items() if name != "id"}

    def _value(self, type_: Type) -> Any:
        return self.rng.choice(VALUES[str(type_)])

    def new_rows(self, count: int) -> list[Row]:
        self.next_id += count
        return [self._row(self.next_id - count + place) for place in range(count)]

    def _append(self) -> Draw:
        branches = [name for name in self.model.branches if name != "main"]
        if branches and self.rng.random() < 0.2:
            return Append(self.new_rows(self.rng.randrange(1, 4)), branch=self.rng.choice(branches)), ALL
        return Append(self.new_rows(self.rng.randrange(1, 9))), ALL

    def _where(self) -> Where | None:
        """A filter that some row of main meets."""
        rows = self.model.state().rows
        if not rows:
            return None
        row = self.rng.choice(rows)
        at = col("id")
        few = sorted({row["id"], *(each["id"] for each in self.rng.sample(rows, min(len(rows), 2)))})
        filters = [at.isin(*few) if len(few) > 1 else at == row["id"], at < row["id"] + 1, at == row["id"]]
        name = self.rng.choice([n for n, t in self.types.items() if str(t) in {"int", "long", "string"}])
        other: Column = col(name)
        own = row[name]
        if own is None:
            filters.append(other.is_null())
        elif "'" not in str(own) and own != -(2**63):
            filters += [other == own, (other == own) & (at >= row["id"]), (other > own) | (at == row["id"])]
        return self.rng.choice(filters)

    def _delete(self) -> Draw | None:
        where = self._where()
        return None if where is None else (Delete(where), ALL)

    def _update(self) -> Draw | None:
        where = self._where()
        able = [n for n, t in self.types.items() if n != "id" and str(t) in {"int", "string"}]
        if where is None or not able:
            return None
        chosen = self.rng.sample(able, min(len(able), self.rng.randrange(1, 3)))
        values = {name: self._value(self.types[name]) for name in chosen}
        if any("'" in str(value) for value in values.values()):
            return None
        return Update(where, values), BOTH

    def _upsert(self) -> Draw:
        rows = self.model.state().rows
        old = [self._row(row["id"]) for row in self.rng.sample(rows, min(len(rows), self.rng.randrange(3)))]
        # PyIceberg's fails where older files have other columns than the table.
        return Upsert([*old, *self.new_rows(self.rng.randrange(1, 3))]), BOTH if self.was_evolved else ALL

    def _overwrite(self) -> Draw | None:
        where = self._where()
        return None if where is None else (Overwrite(self.new_rows(2), where), ("ours", "pyiceberg"))

    def _by_key(self) -> Draw | None:
        rows = self.model.state().rows
        if not rows:
            return None
        keys = [{"id": row["id"]} for row in self.rng.sample(rows, min(len(rows), 2))]
        kind = self.rng.randrange(4)
        if kind == 0:
            return ConvertEqualityDeletes(), OURS
        if kind == 1 and not self.was_partitioned:
            return DeleteKeys(keys), JAVA
        changes: list[Any] = [("update", self._row(keys[0]["id"])), ("insert", self.new_rows(1)[0])]
        changes += [("delete", key) for key in keys[1:]]
        return Stream(changes), OURS

    # ---- schema --------------------------------------------------------------------------------------------------

    def _fresh(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def _column(self) -> Draw | None:
        drawn = self._edit()
        self.was_evolved |= drawn is not None
        return drawn

    def _edit(self) -> Draw | None:
        more = [name for name in self.types if name.startswith("c")]
        kind = self.rng.randrange(5)
        if kind == 0:
            name, type_ = self._fresh("c"), self.rng.choice(ADDED)
            self.types[name] = type_
            return AddColumn(name, type_), ALL
        if kind == 1 and more:
            name = self.rng.choice(more)
            del self.types[name]
            return DropColumn(name), ALL
        if kind == 2:
            name = self.rng.choice([n for n in self.types if n != "id"])
            new = self._fresh("c" if name.startswith("c") else "r")
            self.types = {new if n == name else n: t for n, t in self.types.items()}
            self.fields = {field: (new if n == name else n, by) for field, (n, by) in self.fields.items()}
            return RenameColumn(name, new), ALL
        if kind == 3:
            able = [n for n, t in self.types.items() if str(t) in {"int", "decimal(9, 2)"}]
            if not able:
                return None
            name = self.rng.choice(able)
            wider: Type = icebench.LONG if str(self.types[name]) == "int" else icebench.DecimalType(20, 2)
            self.types[name] = wider
            return Promote(name, wider), ALL
        name = self.rng.choice(list(self.types))
        after = self.rng.choice([None, *(n for n in self.types if n != name)])
        return Move(name, after), ALL

    def _field(self) -> Draw | None:
        """Partition fields; with deletes by key of the key alone, so that a key has one partition."""
        kind = self.rng.randrange(3)
        if kind == 0 and len(self.fields) < 2:
            by_key = [("id", "bucket[2]"), ("id", "bucket[3]"), ("id", "truncate[5]")]
            text = next(n for n, t in self.types.items() if str(t) == "string")
            drawn = by_key if self.keyed else [*by_key, (text, "identity"), (text, "bucket[2]")]
            drawn = [each for each in drawn if each not in self.fields.values()]
            name, self.was_partitioned = self._fresh("f"), True
            self.fields[name] = self.rng.choice(drawn)
            return AddField(*self.fields[name], name), ALL
        if not self.fields:
            return None
        name = self.rng.choice(list(self.fields))
        source = self.fields.pop(name)
        if kind == 1:
            # What version 1 leaves in its place is redundant to PyIceberg, which then writes nothing.
            self.has_void |= self.version == 1
            return DropField(name), BOTH if self.version == 1 else ALL
        new = self._fresh("f")
        self.fields[new] = source
        self.was_field_renamed = True
        return RenameField(name, new), ALL

    # ---- layout, references --------------------------------------------------------------------------------------

    def _layout(self) -> Draw | None:
        number = next((n for n, t in self.types.items() if str(t) in {"int", "long"} and n != "id"), "id")
        drawn: list[Draw] = [
            (RewriteData(), BOTH),
            (RewriteData(zorder=("id",) if number == "id" else (number, "id")), OURS),
            (RewriteManifests(), BOTH),
            (Expire(self.rng.randrange(1, 4)), BOTH),
            (Sort([(number, "desc", "nulls-last")]), BOTH),
            (SetProperties({"commit.manifest.min-count-to-merge": self.rng.choice(["2", "100"])}), ALL),
        ]
        if self.version >= 2:
            drawn += [(SetProperties(self.rng.choice([ON_READ, ON_WRITE])), ALL)] * 2
            # Java's fails once a partition field was renamed; and it leaves vectors as they are.
            able = BOTH if self.version == 2 and not self.was_field_renamed else OURS
            drawn.append((RewritePositionDeletes(), able))
        return self.rng.choice(drawn)

    def _reference(self) -> Draw | None:
        if "main" not in self.model.branches:
            return None
        name = self._fresh("t")
        return (Tag(name), ALL) if self.rng.random() < 0.5 else (Branch(name), ALL)

    def _upgrade(self) -> Draw | None:
        if self.version == 3:
            return None
        self.version += 1
        return Upgrade(self.version), BOTH


COLUMNS: tuple[Type, ...] = (icebench.LONG, icebench.STRING, icebench.INT)
"""The types of `PLAIN`."""


def draw_history(seed: int, steps: int) -> tuple[History, int]:
    """A history of that seed and so many steps, and the format version that its table begins with."""
    rng = Random(seed)
    keyed = rng.random() < 0.25
    version = rng.choice([2, 3] if keyed else [1, 2, 2, 3])
    drawing = Drawing(rng, version, keyed)
    creator = rng.choice(ALL if version < 3 else BOTH)
    catalog = rng.choice(["sql", "rest"])
    properties = rng.choice([ON_READ, ON_WRITE]) if version >= 2 else {}
    drawn = [Step(rng.choice(BOTH), _first(drawing)), *(drawing.draw() for _ in range(steps - 1))]
    if keyed:
        drawn.append(Step("ours", ConvertEqualityDeletes()))
    coda: tuple[Engine, ...] = ALL if drawing.suits_pyiceberg else BOTH
    history = History(
        name=f"seed {seed}",
        columns=PLAIN,
        steps=drawn,
        properties=properties,
        created_by=creator,
        catalog=catalog,  # type: ignore[arg-type]
        coda=coda,
        probes=[col("id") < 10, col("id").isin(3, 12, 17)],
    )
    return history, version


def _first(drawing: Drawing) -> Append:
    change = Append(drawing.new_rows(8))
    change.apply(drawing.model)
    return change
