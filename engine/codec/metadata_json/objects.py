"""Typed access to parsed JSON, with errors that name the path, such as ``snapshots[3].summary.operation``.

The names of JSON members are used in `engine.codec` only; the rest of the engine uses the classes of `engine.spec`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias, TypeVar

import numpy as np

from engine.codec.budget import budget_of, too_large
from engine.errors import CorruptTable

T = TypeVar("T")
JsonValue: TypeAlias = Any
"""Anything that JSON can hold, as Python's own types."""

_SMALL_BYTES = 16 << 20
_STEP_BYTES = 1 << 20
_OPENING_MASK = 0xFF ^ ord("{") ^ ord("[")
_CONTAINER_BYTES, _VALUE_BYTES = 160, 60
"""Memory of an object or array with one member, and of each further member, as measured in Python."""
JSON_COPIES = 3
"""Copies of the text that decoding JSON holds at least."""
_INT32 = range(-(1 << 31), 1 << 31)
_INT64 = range(-(1 << 63), 1 << 63)
_SNAPSHOT_IDS = range(-(1 << 63), 1 << 64)
_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "an integer", float: "a number"}


def parse_json(data: bytes, *, location: str | None = None, file_size: int | None = None) -> JsonValue:
    """Parse a UTF-8 JSON text.

    Args:
        data: The text.
        location: For messages.
        file_size: The size of the file it comes from, if that is compressed.

    Raises:
        CorruptTable: Not JSON, nested too deeply, or with a text that UTF-8 cannot hold.
        TooLarge: Its values take more memory than a file of that size may.
    """
    if len(data) > _SMALL_BYTES:
        _check_memory(data, len(data) if file_size is None else file_size, location)
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
        # Searching for one letter takes a tenth of the time.
        if b"\\" in data and (b"\\ud" in data or b"\\uD" in data):
            # An escaped half of a surrogate pair is valid JSON but not valid text, and would fail wherever it is used.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (ValueError, RecursionError) as error:
        raise CorruptTable(f"not valid JSON: {error}", location=location) from error


def _check_memory(data: bytes, file_size: int, location: str | None) -> None:
    """Raise TooLarge for a text with too many values: an empty object takes thirty times the memory of its text."""
    text = np.frombuffer(data, np.uint8)
    letters, marks = np.empty(_STEP_BYTES, np.uint8), np.empty(_STEP_BYTES, np.bool_)
    values = containers = 0
    for begin in range(0, len(text), _STEP_BYTES):
        step = text[begin : begin + _STEP_BYTES]
        size = len(step)
        values += int(np.count_nonzero(np.equal(step, ord(","), out=marks[:size])))
        # Both opening brackets, which differ by one bit.
        np.bitwise_and(step, _OPENING_MASK, out=letters[:size])
        containers += int(np.count_nonzero(np.equal(letters[:size], ord("["), out=marks[:size])))
    # Once as bytes, once as text, once as the strings in it; one wide character makes four bytes of each.
    copies = JSON_COPIES if data.isascii() else 3 * JSON_COPIES
    limit = budget_of(file_size)
    if copies * len(data) + _CONTAINER_BYTES * containers + _VALUE_BYTES * values > limit:
        raise too_large(f"JSON of {len(data)} bytes", limit, location=location)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def write_json(value: JsonValue) -> bytes:
    """Encode a value as compact UTF-8 JSON."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("utf-8")


class JsonObject:
    """A JSON object that knows its path. A member that is null counts as absent.

    Getters without ``or_none`` raise CorruptTable for an absent member; all raise it for a member of another type.
    """

    __slots__ = ("location", "members", "path")

    def __init__(self, value: object, *, path: str = "", location: str | None = None) -> None:
        if not isinstance(value, Mapping):
            raise CorruptTable(f"expected an object, not {_kind(value)}", location=location, path=path or None)
        self.members: Mapping[str, Any] = value
        self.path = path
        self.location = location

    def path_of(self, key: str) -> str:
        """The path of a member."""
        return f"{self.path}.{key}" if self.path else key

    def error(self, key: str, reason: str) -> CorruptTable:
        """An error about a member, with its path."""
        return CorruptTable(reason, location=self.location, path=self.path_of(key))

    def has(self, key: str) -> bool:
        """Whether the member is present and not null."""
        return self.members.get(key) is not None

    def _of_type(self, key: str, expected: type) -> JsonValue:
        value = self.members.get(key)
        if value is None:
            raise self.error(key, "is required and missing")
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise self.error(key, f"expected {_NAMES[expected]}, not {_kind(value)}")
        return value

    def value(self, key: str) -> JsonValue:
        """A member of any type."""
        value = self.members.get(key)
        if value is None:
            raise self.error(key, "is required and missing")
        return value

    def text(self, key: str) -> str:
        """A string."""
        return self._of_type(key, str)

    def text_or_none(self, key: str) -> str | None:
        """A string, or None when absent."""
        return self.text(key) if self.has(key) else None

    def flag(self, key: str) -> bool:
        """A boolean."""
        return self._of_type(key, bool)

    def int32(self, key: str) -> int:
        """An integer of 32 bits."""
        return self._check_range(key, self._of_type(key, int), _INT32)

    def int32_or_none(self, key: str) -> int | None:
        """An integer of 32 bits, or None when absent."""
        return self.int32(key) if self.has(key) else None

    def int64(self, key: str) -> int:
        """An integer of 64 bits."""
        return self._check_range(key, self._of_type(key, int), _INT64)

    def int64_or_none(self, key: str) -> int | None:
        """An integer of 64 bits, or None when absent."""
        return self.int64(key) if self.has(key) else None

    def snapshot_id(self, key: str) -> int:
        """A snapshot id: 64 bits, of which some writers use the sign."""
        return self._check_range(key, self._of_type(key, int), _SNAPSHOT_IDS)

    def snapshot_id_or_none(self, key: str) -> int | None:
        """A snapshot id, or None when absent."""
        return self.snapshot_id(key) if self.has(key) else None

    def _check_range(self, key: str, value: int, allowed: range) -> int:
        if value not in allowed:
            raise self.error(key, f"{value} is out of range")
        return value

    def child(self, key: str) -> JsonObject:
        """An object."""
        return JsonObject(self._of_type(key, dict), path=self.path_of(key), location=self.location)

    def child_or_empty(self, key: str) -> JsonObject:
        """An object; an empty one when absent."""
        return self.child(key) if self.has(key) else JsonObject({}, path=self.path_of(key), location=self.location)

    def children(self, key: str) -> Iterator[JsonObject]:
        """The objects of an array."""
        path = self.path_of(key)
        for index, value in enumerate(self._of_type(key, list)):
            yield JsonObject(value, path=f"{path}[{index}]", location=self.location)

    def children_or_empty(self, key: str) -> Iterator[JsonObject]:
        """The objects of an array; nothing when absent."""
        return self.children(key) if self.has(key) else iter(())

    def decoded(
        self, key: str, plain: Callable[[object], T | None], decode: Callable[[JsonObject], T]
    ) -> tuple[T, ...]:
        """Decode the objects of an array, none if absent: by `plain`, or by `decode` where `plain` returns None."""
        if not self.has(key):
            return ()
        made = []
        for index, value in enumerate(self._of_type(key, list)):
            found = plain(value)
            if found is None:
                found = decode(JsonObject(value, path=f"{self.path_of(key)}[{index}]", location=self.location))
            made.append(found)
        return tuple(made)

    def int32s(self, key: str) -> tuple[int, ...]:
        """An array of integers of 32 bits."""
        return tuple(self._check_range(f"{key}[{i}]", n, _INT32) for i, n in enumerate(self._elements(key, int)))

    def int64s(self, key: str) -> tuple[int, ...]:
        """An array of integers of 64 bits."""
        return tuple(self._check_range(f"{key}[{i}]", n, _INT64) for i, n in enumerate(self._elements(key, int)))

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings."""
        return tuple(self._elements(key, str))

    def _elements(self, key: str, expected: type) -> Iterator[JsonValue]:
        for index, value in enumerate(self._of_type(key, list)):
            place = f"{key}[{index}]"
            if not isinstance(value, expected) or isinstance(value, bool):
                raise self.error(place, f"expected {_NAMES[expected]}, not {_kind(value)}")
            yield value

    def text_map(self, key: str) -> dict[str, str]:
        """An object of strings; an empty one when absent."""
        if not self.has(key):
            return {}
        child = self.child(key)
        return {name: child.text(name) for name in child.members}


def _kind(value: object) -> str:
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)
