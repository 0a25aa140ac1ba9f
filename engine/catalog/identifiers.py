"""Full names of tables and namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from icebench.engine.commit.committer import Identifier
from icebench.engine.errors import Invalid


def table_identifier(name: str | Sequence[str]) -> Identifier:
    """``"db.events"`` or ``("db", "events")`` as a tuple of at least one namespace level and the table's own name.

    Raises:
        Invalid: No namespace, or a level that cannot be a directory name or would not survive dotted spelling.
    """
    parts = _parts(name)
    if len(parts) < 2:
        raise Invalid(f"table name {'.'.join(parts)!r} has no namespace; write namespace.table")
    return parts


def namespace_identifier(name: str | Sequence[str]) -> tuple[str, ...]:
    """``"a.b"`` or ``("a", "b")`` as a tuple; raises Invalid for an empty one, as `table_identifier`."""
    parts = _parts(name)
    if not parts:
        raise Invalid("a namespace needs a name")
    return parts


def dotted(identifier: Sequence[str]) -> str:
    """The name with dots, as in databases."""
    return ".".join(identifier)


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    for part in parts:
        # Levels become directories and are joined by dots in catalogs.
        if not part or "/" in part or "." in part or "\\" in part or "\0" in part:
            raise Invalid(f"{dotted(parts)!r} is not a name: {part!r} is empty or has one of . / \\")
    return parts
