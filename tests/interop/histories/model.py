"""The oracle: what a table holds, as plain Python rows by column name."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tests.interop.histories.filters import Row


class Edit(Protocol):
    """A change of the schema, which changes rows that exist, at whatever time they are looked at again."""

    def edited(self, state: State) -> State:
        """The rows and columns after it."""
        ...


@dataclass(frozen=True)
class State:
    """Rows, the names of their columns in order, and how many edits of the schema they have seen."""

    rows: tuple[Row, ...]
    columns: tuple[str, ...]
    epoch: int = 0


@dataclass
class Model:
    """Branches of rows.

    Args:
        columns: Names, in order.
    """

    columns: tuple[str, ...]
    edits: list[Edit] = field(default_factory=list)
    branches: dict[str, State] = field(default_factory=dict)
    tags: dict[str, State] = field(default_factory=dict)
    labels: dict[str, State] = field(default_factory=dict)
    staged: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    write_defaults: dict[str, Any] = field(default_factory=dict)

    def state(self, branch: str = "main") -> State:
        """What a branch holds now; a branch that does not exist begins as main is."""
        found = self.branches.get(branch, self.branches.get("main"))
        return State((), self.columns, len(self.edits)) if found is None else self.evolved(found)

    def evolved(self, state: State) -> State:
        """An older state, seen with the schema of today."""
        for edit in self.edits[state.epoch :]:
            state = edit.edited(replace(state, rows=deepcopy(state.rows)))
        return replace(state, epoch=len(self.edits))

    def edit(self, edit: Edit) -> None:
        self.edits.append(edit)
        self.columns = edit.edited(State((), self.columns)).columns

    def set(self, rows: Iterable[Row], branch: str = "main") -> None:
        self.branches[branch] = State(tuple(self.whole(row) for row in rows), self.columns, len(self.edits))

    def whole(self, row: Row) -> Row:
        """A row with every column: what was not given is the write default, or null."""
        return {name: row.get(name, self.write_defaults.get(name)) for name in self.columns}


def at(rows: Iterable[Row], path: Sequence[str]) -> Iterator[Row]:
    """The structs that hold the last part of a path: inside structs, list elements (``element``) and map values."""
    for row in rows:
        if len(path) == 1:
            yield row
            continue
        value = row[path[0]]
        if value is None:
            continue
        inner, rest = [value], path[1:]
        if rest[0] == "element":
            inner, rest = value, rest[1:]
        elif rest[0] == "value" and isinstance(value, list):
            inner, rest = [v for _, v in value], rest[1:]
        yield from at((v for v in inner if v is not None), rest)


@dataclass(frozen=True)
class Edited:
    """An edit of values at a path, and of the column names.

    Args:
        path: Of the field.
        change: Changes the struct that holds the field, in place.
        columns: The new names of the columns, of the old.
    """

    path: str
    change: Callable[[Row], None] = lambda _: None
    columns: Callable[[list[str]], list[str]] = lambda names: names

    def edited(self, state: State) -> State:
        for holder in at(state.rows, self.path.split(".")):
            self.change(holder)
        names = state.columns if "." in self.path else tuple(self.columns(list(state.columns)))
        return replace(state, rows=tuple({n: row[n] for n in names} for row in state.rows), columns=names)


def plain(value: Any) -> Any:
    """A value in the one form that all engines' values are compared in."""
    match value:
        case dict():
            return {name: plain(value[name]) for name in sorted(value)}
        case list() if value and all(isinstance(pair, tuple) for pair in value):
            return sorted((tuple(map(plain, pair)) for pair in value), key=repr)
        case list():
            return [plain(v) for v in value]
        case dt.datetime() if value.tzinfo is not None:
            return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()} UTC"
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case bool() | int() | bytes() | None:
            return value
        case bytearray():
            return bytes(value)
    return repr(value) if isinstance(value, float) else str(value)


def check_rows(found: Iterable[Row], expected: Iterable[Row]) -> None:
    """The same rows, each as often; an AssertionError shows those that only one side has."""
    left, right = Counter(bag(found)), Counter(bag(expected))
    assert left == right, f"found only: {list((left - right).elements())}; missing: {list((right - left).elements())}"


def bag(rows: Iterable[Row]) -> list[str]:
    """Rows as text, in order: it distinguishes NaN, signed zeros, and the scale of decimals."""
    return sorted(repr(plain(row)) for row in rows)
