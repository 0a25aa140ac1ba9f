"""A database connection that distinguishes three kinds of failure."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Delete, Engine, Insert, QueuePool, Update, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, IntegrityError, NoSuchModuleError, OperationalError, SQLAlchemyError

from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy
from icebench.engine.errors import AlreadyExists, Invalid, NotFound, StorageFailed, without_secrets

_BUSY_SECONDS = 30
"""How long SQLite waits for another writer."""

_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Database:
    """A pool of connections. Thread-safe.

    Args:
        url: An SQLAlchemy URL.
        creates: Whether the directory of an SQLite file is made; else the file must exist.

    Raises:
        NotFound: There is no such file.
    """

    def __init__(self, url: str, *, creates: bool = True) -> None:
        self._shown, self._password, self.engine = _open(url, creates=creates)

    def __str__(self) -> str:
        return self._shown

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to query; raises StorageFailed."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise self._failed(error) from error

    @contextmanager
    def writing(self, taken: str) -> Iterator[Connection]:
        """A connection whose changes become visible together, at the end of the block.

        Args:
            taken: The message where a row with that key exists.

        Raises:
            AlreadyExists: A row with that key exists.
            CatalogBusy: Another writer was at work for too long; nothing was changed.
            AnswerLost: The changes may or may not have been made.
            StorageFailed: The database refused; nothing was changed.
        """
        try:
            with self.engine.connect() as connection:
                yield connection
                self._commit(connection)
        except IntegrityError as error:
            raise AlreadyExists(taken) from error
        except SQLAlchemyError as error:
            # Before the commit: the database rolls an unfinished transaction back, whatever became of the connection.
            raise self._failed(error) from error

    def change(self, statement: Insert | Update | Delete, taken: str = "the row exists already") -> int:
        """Run one statement in a transaction of its own; the number of rows it changed. Errors as `writing`."""
        changed = -1
        try:
            with self.writing(taken) as connection:
                changed = connection.execute(statement).rowcount
        except AnswerLost:
            if changed != 0:
                raise
        return changed

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except IntegrityError:
            raise
        except Exception as error:
            is_undone = _roll_back(connection)
            if is_undone and isinstance(error, SQLAlchemyError) and isinstance(self._failed(error), CatalogBusy):
                # SQLite could not commit beside a reader, and had kept the transaction open.
                raise self._failed(error) from error
            # Whatever it is, the answer did not arrive.
            raise AnswerLost(f"{self}: {self._reason(error)}") from error
        except BaseException:  # an interrupt
            _roll_back(connection)
            raise

    def _failed(self, error: SQLAlchemyError) -> StorageFailed:
        text = f"catalog database {self}: {self._reason(error)}"
        cause = error.orig if isinstance(error, OperationalError) else None
        # The low byte is the primary result code.
        if isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF in _BUSY_CODES:
            return CatalogBusy(text)
        return StorageFailed(text)

    def _reason(self, error: Exception) -> str:
        reason = str(getattr(error, "orig", None) or error).replace(self._password or "\0", "***")
        return reason.splitlines()[0] if reason else type(error).__name__


def _roll_back(connection: Connection) -> bool:
    """End a transaction whose commit failed; whether that was possible. SQLAlchemy leaves it as it is, and whoever gets
    the connection next would see what is not committed, or commit it."""
    try:
        connection.connection.rollback()
    except (SQLAlchemyError, connection.dialect.loaded_dbapi.Error):
        connection.invalidate()
        return False
    return True


def _open(url: str, *, creates: bool) -> tuple[str, str | None, Engine]:
    """The address as it may be shown, its password, and the pool."""
    shown = without_secrets(url)
    try:
        parsed = make_url(url)
        if "@" in (parsed.host or ""):
            raise Invalid(f"{shown!r} has two @: one that is part of a password is written %40")
        if parsed.get_backend_name() == "sqlite":
            return shown, parsed.password, _open_sqlite(parsed, creates=creates)
        return shown, parsed.password, create_engine(parsed, pool_pre_ping=True)
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise Invalid(f"no driver for the database {url.partition(':')[0]!r} is installed: {error}") from error
    except (ArgumentError, ValueError, TypeError):
        # The cause may quote a part of the address.
        raise Invalid(f"{shown!r} is not the URL of a database, such as sqlite:///warehouse/catalog.db") from None
    except OSError as error:
        raise StorageFailed(f"cannot make the directory of {shown}: {error.strerror}") from error


def _open_sqlite(url: URL, *, creates: bool) -> Engine:
    arguments: dict[str, object] = {"check_same_thread": False}
    if "timeout" not in url.query:
        arguments["timeout"] = _BUSY_SECONDS
    if not url.database or url.database == ":memory:":
        # Every connection to it would be a database of its own: there is one, which threads share under a lock.
        return create_engine(url, connect_args=arguments, poolclass=QueuePool, pool_size=1, max_overflow=0)
    if not url.database.startswith("file:"):
        if creates:
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        elif not Path(url.database).exists():
            raise NotFound(f"there is no database {url.database}")
    return create_engine(url, connect_args=arguments)
