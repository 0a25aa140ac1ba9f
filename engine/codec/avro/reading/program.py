"""Compiles an Avro writer schema into a small program that `kernels` runs over the bytes.

The specification identifies fields by id, so the program, not the decoder, knows the writer's order, its extra fields
and its optional unions: wanted values are stored into columns, all others are skipped. One decoder serves every schema,
so it is compiled only once.

A *path* names a place: field ids from the root, ``"element"`` inside a list, ``"key"`` and ``"value"`` inside a map.
Fields without an id have no path and cannot be wanted. Objects are rows of table 0; the elements of each wanted list
are rows of a table of their own, in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from icebench.engine.codec.avro.schema import AvroSchema
from icebench.engine.codec.metadata_json.objects import parse_json
from icebench.engine.errors import CorruptTable, Unsupported
from icebench.engine.spec.types import MAX_DEPTH

Path: TypeAlias = tuple[int | str, ...]
Kind: TypeAlias = Literal["int", "boolean", "float", "double", "bytes", "list", "null"]

_MAX_STEPS = 100_000
_WHERE = "header.avro.schema"
_COMPLEX = frozenset({"record", "error", "enum", "array", "map", "fixed"})
_FIXED_KINDS: dict[str, Kind] = {"boolean": "boolean", "float": "float", "double": "double"}
_FIXED_SIZES = {"boolean": 1, "float": 4, "double": 8}
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class Op(IntEnum):
    """Instructions; arguments a, b, c. ``column`` arguments are followed by the table of the column."""

    END = 0  # the object is complete
    SKIP_VARINTS = 1  # a: how many numbers
    SKIP_BYTES = 2  # one length and its bytes
    SKIP_FIXED = 3  # a: how many bytes
    INT = 4  # a: column
    BYTES = 5  # a: column
    FIXED = 6  # a: column, c: size in bytes
    UNION = 7  # a: number of branches; as many JUMP instructions follow
    JUMP = 8  # a: target
    LIST_BEGIN = 9  # a: column, c: table of the elements
    LIST_END = 10  # a: column, c: table of the elements
    BLOCK = 11  # a: target after the last block, c: table of the elements; reads a block's item count, pushes it
    SKIP_BLOCK = 12  # as BLOCK, but blocks that say their size are stepped over
    NEXT = 13  # a: the items' first instruction, b: their BLOCK, c: table of the elements or -1
    SKIP_EMPTY = 14  # blocks of items that take no bytes
    SKIP_PAIRS = 15  # a map of numbers to numbers (a = 0) or to bytes (a = 1)
    SLOTS = 16  # as SKIP_PAIRS, but the values of wanted keys are stored; b: index of the map


COLUMN_OPS = frozenset({Op.INT, Op.BYTES, Op.FIXED, Op.LIST_BEGIN, Op.LIST_END})
"""Instructions whose first argument is a column."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which fields to decode: `paths`, all children of `parents`, and the wanted keys of each map in `slots`."""

    paths: frozenset[Path]
    parents: frozenset[Path] = frozenset()
    slots: frozenset[Path] = frozenset()

    def wants(self, path: Path | None) -> bool:
        """Whether the leaf or list at that path is decoded."""
        return path is not None and (path in self.paths or path[:-1] in self.parents)


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """A decoded column. `width` is the size in bytes of fixed values, 0 for others; `avro` the Avro type."""

    path: Path
    kind: Kind
    table: int
    width: int = 0
    elements: int = -1
    avro: AvroSchema = None


@dataclass(frozen=True, slots=True)
class SlotLayout:
    """A map of which only wanted keys are decoded: to numbers, or to bytes."""

    path: Path
    kind: Literal["int", "bytes"]


@dataclass(frozen=True)
class Program:
    """The compiled schema. `smallest` is the fewest bytes an object takes; `table_smallest` that of list elements."""

    code: tuple[tuple[int, int, int, int], ...]
    columns: tuple[ColumnLayout, ...]
    slots: tuple[SlotLayout, ...]
    table_smallest: tuple[int, ...]

    @property
    def smallest(self) -> int:
        """The fewest bytes that one object takes."""
        return self.table_smallest[0]


def compile_schema(schema_json: bytes, selection: Selection) -> Program:
    """Compile the program for a writer schema.

    Raises:
        CorruptTable: Not an Avro schema, or a field id is used twice; the caller adds the location.
        Unsupported: A recursive schema, or one that is too deep or too large.
    """
    compiler = _Compiler(selection)
    root = parse_json(schema_json)
    compiler.emit(root, (), 0, 0)
    compiler.table_smallest[0] = compiler.smallest(root, 0)
    compiler.add(Op.END)
    code = tuple((op, a, b, c) for op, a, b, c in compiler.code)
    return Program(code, tuple(compiler.columns), tuple(compiler.slots), tuple(compiler.table_smallest))


@dataclass
class _Compiler:
    selection: Selection
    code: list[list[int]] = field(default_factory=list)
    columns: list[ColumnLayout] = field(default_factory=list)
    slots: list[SlotLayout] = field(default_factory=list)
    table_smallest: list[int] = field(default_factory=lambda: [0])
    names: dict[str, AvroSchema] = field(default_factory=dict)
    paths: set[Path] = field(default_factory=set)
    barrier: int = 0
    steps: int = 0

    def add(self, op: Op, a: int = 0, b: int = 0, c: int = 0) -> int:
        self.code.append([int(op), a, b, c])
        return len(self.code) - 1

    def _step(self, depth: int) -> None:
        """Count an instruction against the limit, since a small nested schema can ask for a great many."""
        self.steps += 1
        if depth > MAX_DEPTH or self.steps > _MAX_STEPS:
            raise Unsupported("an Avro schema that is recursive, nested too deeply, or too large")

    def resolve(self, schema: AvroSchema) -> tuple[str, dict[str, Any]]:
        """The type name and definition of a schema that is no union; named types are remembered."""
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return schema, {}
            schema = self.names.get(schema) or self.names.get(schema.rpartition(".")[2])
        if not isinstance(schema, dict) or not isinstance(schema.get("type"), (str, dict)):
            raise CorruptTable("not an Avro schema", path=_WHERE)
        kind = schema["type"]
        if isinstance(kind, dict) or kind not in _PRIMITIVES | _COMPLEX:
            return self.resolve(kind)
        name = schema.get("name")
        if isinstance(name, str):
            self.names[name] = schema
            self.names[name.rpartition(".")[2]] = schema
        return kind, schema

    def emit(self, schema: AvroSchema, path: Path | None, table: int, depth: int) -> None:
        """Emit the instructions that store or skip one value."""
        self._step(depth)
        if isinstance(schema, dict) and isinstance(schema.get("type"), list):
            schema = schema["type"]
        if isinstance(schema, list):
            self._union(schema, path, table, depth)
            return
        kind, definition = self.resolve(schema)
        match kind:
            case "record" | "error":
                for child, schema_of_child in _fields(definition):
                    child_path = None if path is None or child is None else (*path, child)
                    self.emit(schema_of_child, child_path, table, depth + 1)
            case "array":
                self._array(definition, path, table, depth)
            case "map":
                self._map(definition, path, table, depth)
            case _:
                self._leaf(kind, definition, path, table)

    def _label(self) -> int:
        """Use the next instruction as a jump target, which ends the merging of skips before it."""
        self.barrier = len(self.code)
        return self.barrier

    def _union(self, branches: list[AvroSchema], path: Path | None, table: int, depth: int) -> None:
        if not branches:
            raise CorruptTable("an empty union", path=_WHERE)
        if path is not None and len([b for b in branches if b not in ("null", {"type": "null"})]) > 1:
            if self.selection.wants(path) or path in self.selection.slots:
                raise CorruptTable(f"the field {path} is a union of several types", path=_WHERE)
            path = None
        self.add(Op.UNION, len(branches))
        jumps = [self.add(Op.JUMP) for _ in branches]
        ends = []
        for jump, branch in zip(jumps, branches, strict=True):
            self.code[jump][1] = self._label()
            is_null = branch in ("null", {"type": "null"})
            self.emit(branch, None if is_null else path, table, depth + 1)
            ends.append(self.add(Op.JUMP))
        # The last branch falls through.
        self.code.pop()
        for end in ends[:-1]:
            self.code[end][1] = len(self.code)
        self._label()

    def _column(self, layout: ColumnLayout) -> int:
        if layout.path in self.paths:
            raise CorruptTable(f"the schema has two fields with the ids {layout.path}", path=_WHERE)
        self.paths.add(layout.path)
        self.columns.append(layout)
        return len(self.columns) - 1

    def _leaf(self, kind: str, definition: dict[str, Any], path: Path | None, table: int) -> None:
        wanted = path if self.selection.wants(path) else None
        match kind:
            case "null":
                if wanted is not None:
                    self._column(ColumnLayout(wanted, "null", table))
            case "int" | "long" | "enum":
                if wanted is None:
                    self._skip(Op.SKIP_VARINTS, 1)
                else:
                    self.add(Op.INT, self._column(ColumnLayout(wanted, "int", table, avro=definition)), table)
            case "bytes" | "string":
                if wanted is None:
                    self.add(Op.SKIP_BYTES)
                else:
                    avro = definition or {"type": kind}
                    self.add(Op.BYTES, self._column(ColumnLayout(wanted, "bytes", table, avro=avro)), table)
            case _:
                size = self._fixed_size(kind, definition)
                if wanted is None:
                    self._skip(Op.SKIP_FIXED, size)
                else:
                    name = _FIXED_KINDS.get(kind, "bytes")
                    column = self._column(ColumnLayout(wanted, name, table, width=size, avro=definition))
                    self.add(Op.FIXED, column, table, size)

    def _fixed_size(self, kind: str, definition: dict[str, Any]) -> int:
        size = _FIXED_SIZES.get(kind, definition.get("size"))
        if not isinstance(size, int) or not 0 <= size < 1 << 31:
            raise CorruptTable(f"the schema has a fixed type of size {size!r}", path=_WHERE)
        return size

    def _skip(self, op: Op, amount: int) -> None:
        if len(self.code) > self.barrier and self.code[-1][0] == op:
            self.code[-1][1] += amount
        else:
            self.add(op, amount)

    def _array(self, definition: dict[str, Any], path: Path | None, table: int, depth: int) -> None:
        items = definition.get("items")
        pairs = self._pairs_of(definition)
        kind = self._pair_kind(pairs)
        if path in self.selection.slots and kind is not None:
            assert path is not None
            self.slots.append(SlotLayout(path, kind))
            self.add(Op.SLOTS, int(kind == "bytes"), len(self.slots) - 1)
        elif path is not None and (path in self.selection.slots or self.selection.wants(path)):
            children = [("element", items)] if pairs is None else list(zip(("key", "value"), pairs, strict=True))
            self._list(children, path, table, depth)
        elif kind is not None:
            self.add(Op.SKIP_PAIRS, int(kind == "bytes"))
        elif self.smallest(items, depth + 1) == 0:
            self.add(Op.SKIP_EMPTY)
        else:
            self._skip_blocks([items], depth)

    def _map(self, definition: dict[str, Any], path: Path | None, table: int, depth: int) -> None:
        values = definition.get("values")
        if path is not None and (path in self.selection.slots or self.selection.wants(path)):
            self._list([("key", "string"), ("value", values)], path, table, depth)
        else:
            self._skip_blocks(["string", values], depth)

    def _pairs_of(self, definition: dict[str, Any]) -> tuple[AvroSchema, AvroSchema] | None:
        """Key and value schema of an array that stands for a map (spec appendix A: "Avro")."""
        items = definition.get("items")
        if isinstance(items, list):
            return None
        kind, record = self.resolve(items)
        if kind != "record" or not isinstance(record.get("fields"), list) or len(record["fields"]) != 2:
            return None
        fields = record["fields"]
        if not all(isinstance(f, dict) and "type" in f for f in fields):
            return None
        named = [f.get("name") for f in fields] == ["key", "value"]
        return (fields[0]["type"], fields[1]["type"]) if named or definition.get("logicalType") == "map" else None

    def _pair_kind(self, pairs: tuple[AvroSchema, AvroSchema] | None) -> Literal["int", "bytes"] | None:
        if pairs is None or any(isinstance(schema, list) for schema in pairs):
            return None
        key, value = (self.resolve(schema)[0] for schema in pairs)
        if key not in ("int", "long"):
            return None
        return "int" if value in ("int", "long") else "bytes" if value in ("bytes", "string") else None

    def _list(self, children: list[tuple[str, AvroSchema]], path: Path, table: int, depth: int) -> None:
        smallest = sum(self.smallest(schema, depth + 1) for _, schema in children)
        if smallest == 0:
            raise CorruptTable(f"the list {path} has elements without content", path=_WHERE)
        elements = len(self.table_smallest)
        self.table_smallest.append(smallest)
        column = self._column(ColumnLayout(path, "list", table, elements=elements))
        self.add(Op.LIST_BEGIN, column, table, elements)
        block = self.add(Op.BLOCK, c=elements)
        body = self._label()
        for name, schema in children:
            self.emit(schema, (*path, name), elements, depth + 1)
        self.add(Op.NEXT, body, block, elements)
        self.code[block][1] = self._label()
        self.add(Op.LIST_END, column, table, elements)

    def _skip_blocks(self, schemas: list[AvroSchema], depth: int) -> None:
        block = self.add(Op.SKIP_BLOCK)
        body = self._label()
        for schema in schemas:
            self.emit(schema, None, 0, depth + 1)
        self.add(Op.NEXT, body, block, -1)
        self.code[block][1] = self._label()

    def smallest(self, schema: AvroSchema, depth: int) -> int:
        """The fewest bytes that a value takes."""
        self._step(depth)
        if isinstance(schema, dict) and isinstance(schema.get("type"), list):
            schema = schema["type"]
        if isinstance(schema, list):
            return 1 + min((self.smallest(branch, depth + 1) for branch in schema), default=0)
        kind, definition = self.resolve(schema)
        match kind:
            case "record" | "error":
                return sum(self.smallest(child, depth + 1) for _, child in _fields(definition))
            case "null":
                return 0
            case "boolean" | "float" | "double" | "fixed":
                return self._fixed_size(kind, definition)
        return 1


def _fields(definition: dict[str, Any]) -> list[tuple[int | None, AvroSchema]]:
    """Field id, where there is one, and type of a record's fields."""
    fields = definition.get("fields")
    if not isinstance(fields, list) or not all(isinstance(f, dict) and "type" in f for f in fields):
        raise CorruptTable("a record without a list of fields", path=_WHERE)
    ids = [f.get("field-id") for f in fields]
    return [
        (i if isinstance(i, int) and not isinstance(i, bool) else None, f["type"])
        for i, f in zip(ids, fields, strict=True)
    ]
