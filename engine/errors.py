"""Every error that the engine raises on purpose.

::

    EngineError                     what every caller may catch
    ├── NotFound                    a table, namespace, view, snapshot, reference or file does not exist
    │   ├── NotInCatalog            a table, of a catalog that shares its database with others
    │   └── FileNotFound            a file that the table's metadata promises is missing
    ├── AlreadyExists               the thing to create is there already
    ├── Invalid                     the caller's argument is wrong: a filter, a column, a schema change, a property
    ├── Unsupported                 the format allows it, this engine does not do it; the message names it
    ├── NotInstalled                a package that only some need is not installed; the message says how to get it
    ├── CorruptTable                bytes of the table contradict the specification; `path` is the place inside the file
    │   └── TooLarge                they would decode to more memory than is allowed, which the user may raise
    ├── WriteMismatch               a new file, read back, does not hold the rows that were given; nothing is committed
    ├── StorageFailed               the storage refused: permissions, a full or read-only disk, a broken connection
    └── CommitFailed                the change is not visible
        ├── CommitConflict          another commit came first; the same change may be tried again on the new base
        ├── ValidationFailed        another commit made the change wrong; trying again cannot help
        └── CommitStateUnknown      the catalog's answer was lost; the change may or may not be visible, files are kept

Where the rows are certain, a `ContradictionWarning` takes the place of CorruptTable.

User-facing programs print `str(error)`: one line, what is wrong, where, and what to do; secrets in addresses are masked
in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_SECRET = re.compile(
    r"(secret|passw(or)?d|pwd|token|credential|(account|private)[-.]key|odbc_connect|signature)"
    r"(?!.*-(enabled|ms|at|id)\b)|^sig$|\bheader\.",
    re.IGNORECASE,
)
_HTTP_USER = re.compile(r"(https?://)[^/?#\s]*@", re.IGNORECASE)
_PASSWORD = re.compile(r"((?<!http)(?<!https)://[^:/@]*):.{0,2000}@", re.IGNORECASE)
"""The password in other addresses: SQLAlchemy takes everything up to the @, including slashes and spaces."""
_FEWEST_CHARACTERS = 4
_PARAMETER = re.compile(r"([?&;][^=&;?\s'\"]{1,64}=)[^&;\s'\"]*")


def is_secret(name: str) -> bool:
    """Whether the value of a property or parameter of that name is a secret; headers count as secrets."""
    return _SECRET.search(name) is not None


def secrets_of(properties: Mapping[str, str]) -> list[str]:
    """Values that no message may show, and of a header's value also the part after the scheme. Very short values are
    left out: hiding "1" would leave little of a message."""
    found = [text for name, value in properties.items() if is_secret(name) for text in (value, value.split(" ")[-1])]
    return [text for text in found if len(text) >= _FEWEST_CHARACTERS]


def without_secrets(text: str) -> str:
    """The text with passwords in addresses masked, and with parameters of addresses masked whose names are secret."""
    text = _PASSWORD.sub(r"\1:***@", _HTTP_USER.sub(r"\1***@", text))
    return _PARAMETER.sub(lambda found: f"{found[1]}***" if is_secret(found[1][1:-1]) else found[0], text)


class EngineError(Exception):
    """Base of all deliberate errors. `str()` is one line for people. Pickling keeps type, text and attributes."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(without_secrets(each) if isinstance(each, str) else each for each in args))

    def __reduce__(self) -> tuple[object, ...]:
        # Exception.__reduce__ would call the constructor with the text in place of its parts.
        return _restore, (type(self), self.args, vars(self))


class NotFound(EngineError):
    """A table, namespace, view, snapshot, reference or file does not exist."""


class NotInCatalog(NotFound):
    """A table is not in this catalog, whose database holds other catalogs, too.

    Args:
        message: What was not found.
        catalogs: The names of all catalogs of the database that have a table.
    """

    def __init__(self, message: str, catalogs: tuple[str, ...]) -> None:
        self.catalogs = catalogs
        super().__init__(message)


class FileNotFound(NotFound):
    """A file is not in storage.

    Args:
        location: The full location of the missing file.
        needed_by: What refers to it, for example ``"table db.t, snapshot 17"``.
    """

    def __init__(self, location: str, needed_by: str | None = None) -> None:
        self.location = location
        super().__init__(f"no such file: {location}" + (f" (needed by {needed_by})" if needed_by else ""))


class AlreadyExists(EngineError):
    """The table, namespace, view, reference or file to create exists already."""


class Invalid(EngineError):
    """The caller's argument is wrong: a filter, a column, a schema change, a property."""


class Unsupported(EngineError):
    """The format allows it, but this engine does not support it; the message names the feature."""


class NotInstalled(EngineError):
    """An optional package is not installed.

    Args:
        package: The package.
        extra: The extra of this distribution that installs it.
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'icebench[{extra}]'")


class CorruptTable(EngineError):
    """Bytes of the table contradict the specification.

    Args:
        reason: What is wrong.
        location: The file.
        path: The place inside the file, for example ``"snapshots[3].summary"`` or ``"block 2, entry 17"``.
        needed_by: What refers to the file, for example ``"table db.t, snapshot 17"``.
    """

    def __init__(
        self, reason: str, *, location: str | None = None, path: str | None = None, needed_by: str | None = None
    ) -> None:
        # Libraries report damage in several lines, with pieces of the file.
        reason = "; ".join(line.strip() for line in reason.splitlines() if line.strip())
        self.reason = "".join(c if c.isprintable() else "?" for c in reason)
        self.location = location
        self.path = path
        self.needed_by = needed_by
        where = " at ".join(part for part in (location, path) if part)
        message = f"{where}: {self.reason}" if where else self.reason
        super().__init__(message + (f" (needed by {needed_by})" if needed_by else ""))


class TooLarge(CorruptTable):
    """A file of the table would take more memory to decode than `icebench.engine.codec.budget` allows."""


class WriteMismatch(EngineError):
    """A new file, read back, does not hold the rows that were given: the encoder or the storage is faulty. The message
    names the file and the column; the file is removed and nothing is committed."""


class StorageFailed(EngineError):
    """The storage refused an operation: permissions, a full or read-only disk, a broken connection."""


class CommitFailed(EngineError):
    """The change is not visible."""


class CommitConflict(CommitFailed):
    """Another commit came first; the same change may be staged again on the new base."""


class ValidationFailed(CommitFailed):
    """A concurrent commit invalidated this change; staging it again cannot help."""


class CommitStateUnknown(CommitFailed):
    """The catalog's answer was lost. The change may or may not be visible; no written file was removed."""


class Contradiction(NamedTuple):
    """A file that differs from what the table's metadata states (such as its length or counts), or metadata that
    contradicts itself or the specification, although the rows are certain: the file itself is consistent (sync markers,
    footer).

    `cause` names the kind; ``f"{location}: {reason}"`` is what CorruptTable would say.
    """

    cause: str
    location: str
    reason: str


class ContradictionWarning(UserWarning):
    """A file contradicts the table's metadata in a way that other readers do not check; see `Contradiction`. With
    ``verify="strict"``, CorruptTable is raised instead."""


class RelocationWarning(UserWarning):
    """A table was moved as a whole: its files are read from the directory of its metadata, not from the locations that
    the metadata states.
    """


class IgnoredPropertyWarning(UserWarning):
    """A catalog property has no effect here: it only tunes other engines, and does not affect rows."""


class PlainTextWarning(UserWarning):
    """Credentials are sent over plain http to another host."""


def refuse(contradiction: Contradiction) -> None:
    """Raise CorruptTable for a contradiction."""
    raise CorruptTable(contradiction.reason, location=contradiction.location)


def _restore(kind: type[EngineError], args: tuple[object, ...], attributes: dict[str, object]) -> EngineError:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(attributes)
    return error
