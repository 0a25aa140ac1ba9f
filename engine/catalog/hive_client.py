"""Requests to a Hive metastore, over Thrift: what was refused is distinguished from what may have happened."""

from __future__ import annotations

import getpass
import select
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy
from icebench.engine.commit.retry import Backoff, Waiting
from icebench.engine.errors import AlreadyExists, EngineError, Invalid, NotFound, StorageFailed
from icebench.engine.lazy_module import LazyModule

_THRIFTPY2, _THRIFT = LazyModule("thriftpy2"), LazyModule("thriftpy2.thrift")
_PROTOCOL, _TRANSPORT = LazyModule("thriftpy2.protocol"), LazyModule("thriftpy2.transport")

_PORT = 9083
_TIMEOUT_SECONDS = 100
"""Two requests are made under a lock, which the metastore may take back after 300 seconds (``hive.txn.timeout``)."""
_IDLE_SECONDS = 60
"""How long a connection is kept for another request: to open one costs the metastore ten times what a request does."""
_LOCK_WAITS: dict[str, Any] = {"retries": 1000, "min_wait_ms": 50, "max_wait_ms": 1_000, "total_timeout_ms": 180_000}
_LATE_WAITS: dict[str, Any] = {**_LOCK_WAITS, "total_timeout_ms": 10_000}


class RequestPending(AnswerLost):
    """No answer came: the metastore may still carry the request out."""


class Refused(StorageFailed):
    """The metastore answered with an error that does not say whether something was changed."""


@cache
def idl() -> Any:  # noqa: ANN401 - made from the IDL
    """The module of the metastore's structs; raises NotInstalled."""
    beside = f"{__file__.removesuffix('hive_client.py')}hive_metastore.thrift"
    return _THRIFTPY2.load(beside, module_name="icebench_hive_metastore_thrift")


class Metastore:
    """A metastore, or several with one database. Thread-safe: a connection is used by one `connected` block at a time.

    Args:
        uri: ``thrift://host:9083``; of several, with commas between, the first one that answers is used.
        ugi: ``user`` or ``user:group,group``, for a metastore that takes its clients' word.
        waiting: Waits for locks; its clock measures how long a connection is idle.
        new_id: Names requests for locks.

    Raises:
        Invalid: Not such an address.
        NotInstalled: thriftpy2 is not installed.
    """

    def __init__(
        self,
        uri: str,
        *,
        ugi: str | None = None,
        waiting: Waiting | None = None,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        self.new_id = new_id
        self.uri = uri
        self._addresses = [_address(part.strip()) for part in uri.split(",")]
        user, _, groups = (ugi or "").partition(":")
        self._ugi = (user, [group for group in groups.split(",") if group]) if user else None
        self.user = user or _system_user()
        self.waiting = waiting or Waiting()
        self.lock_waits = Backoff(**_LOCK_WAITS, waiting=self.waiting)
        self.late_waits = Backoff(**_LATE_WAITS, waiting=self.waiting)
        """How long to look for a change whose request had no answer, before another writer may change the table."""
        self._mutex = Lock()
        self._idle: list[Connection] = []
        idl()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection for the block; raises StorageFailed."""
        connection = self._idle_connection() or self._open()
        try:
            yield connection
        finally:
            if connection.is_waiting:
                connection.close()
            else:
                connection.used_at = self.waiting.monotonic()
                with self._mutex:
                    self._idle.append(connection)

    def close(self) -> None:
        """Close the connections that are not in use; a later request opens new ones."""
        while (connection := self._idle_connection()) is not None:
            connection.close()

    def _idle_connection(self) -> Connection | None:
        while True:
            with self._mutex:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.close()

    def _open(self) -> Connection:
        failures = []
        for address in self._addresses:
            try:
                opened = socket.create_connection(address, timeout=_TIMEOUT_SECONDS)
            except OSError as error:
                failures.append(f"{address[0]}:{address[1]}: {error}")
                continue
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, opened)
            if self._ugi is not None:
                try:
                    connection.read("set_ugi", *self._ugi)
                except EngineError:
                    connection.close()
                    raise
            return connection
        raise StorageFailed(f"cannot connect to the Hive metastore {'; '.join(failures)}")


class Connection:
    """Requests to the metastore, of one thread at a time. Errors beside those named: StorageFailed."""

    def __init__(self, metastore: Metastore, opened: socket.socket) -> None:
        transport = _TRANSPORT.TBufferedTransportFactory().get_transport(_TRANSPORT.TSocket(sock=opened))
        self._metastore = metastore
        self._socket = opened
        self._client = _THRIFT.TClient(
            idl().ThriftHiveMetastore, _PROTOCOL.TBinaryProtocolFactory().get_protocol(transport)
        )
        self.is_waiting = False
        """Whether an answer may come that nobody reads."""
        self.used_at = 0.0

    def is_usable(self) -> bool:
        """Whether an idle connection is not known to be closed by the metastore, or by what is in between."""
        idle = self._metastore.waiting.monotonic() - self.used_at
        return idle < _IDLE_SECONDS and not select.select([self._socket], [], [], 0)[0]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def read(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of the method
        """Ask for something; raises NotFound, Invalid."""
        try:
            return self.change(method, *arguments)
        except RequestPending as error:
            raise StorageFailed(str(error)) from error

    def change(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - of the method
        """Change something.

        Raises:
            NotFound: As the metastore says, as are AlreadyExists and Invalid; nothing was changed.
            Refused: An error that does not say whether something was changed.
            RequestPending: No answer came.
        """
        what = f"Hive metastore {self._metastore.uri}: {method}"
        definite: dict[str, type[EngineError]] = {
            "NoSuchObjectException": NotFound,
            "UnknownDBException": NotFound,
            "AlreadyExistsException": AlreadyExists,
            "InvalidObjectException": Invalid,
            "InvalidOperationException": Invalid,
        }
        self.is_waiting = True
        try:
            answer = getattr(self._client, method)(*arguments)
        except (_THRIFT.TException, OSError, ValueError) as error:
            kind = type(error).__name__
            reason = getattr(error, "message", None) or str(error) or kind
            text = f"{what}: {str(reason).splitlines()[0]}"
            if type(error).__module__ == idl().__name__ or isinstance(error, _THRIFT.TApplicationException):
                self.is_waiting = False
                raise definite.get(kind, Refused)(text) from error
            raise RequestPending(text) from error
        self.is_waiting = False
        return answer

    def table(self, database: str, name: str) -> Any:  # noqa: ANN401 - a Table of the IDL
        """A table or view; None where there is none."""
        try:
            return self.read("get_table_req", idl().GetTableRequest(dbName=database, tblName=name)).table
        except NotFound:
            return None

    def alter(self, identifier: Sequence[str], table: Any, expected: Mapping[str, str]) -> None:  # noqa: ANN401
        """Replace a table if it still has the expected parameters, where the metastore looks (Hive 2.3.10, 4.0)."""
        properties = {"DO_NOT_UPDATE_STATS": "true"}
        for key, value in expected.items():
            properties |= {"expected_parameter_key": key, "expected_parameter_value": value}
        context = idl().EnvironmentContext(properties=properties)
        self.change("alter_table_with_environment_context", *identifier, table, context)

    @contextmanager
    def locked(self, identifier: Sequence[str], expected: Mapping[str, str]) -> Iterator[None]:
        """Hold the metastore's exclusive lock of a table, which is waited for while the table has the expected
        parameters.

        Raises:
            CatalogBusy: Others held it for too long, or changed the table.
        """
        lock_id = self._lock(identifier, expected)
        try:
            yield
        finally:
            self._unlock(lock_id)

    def _lock(self, identifier: Sequence[str], expected: Mapping[str, str]) -> int:
        made, (database, name) = idl(), identifier
        component = made.LockComponent(
            type=made.LockType.EXCLUSIVE,
            level=made.LockLevel.TABLE,
            dbname=database,
            tablename=name,
            operationType=made.DataOperationType.NO_TXN,
        )
        agent = f"icebench-{self._metastore.new_id()}"
        request = made.LockRequest(
            component=[component], user=self._metastore.user, hostname=socket.gethostname(), agentInfo=agent
        )
        try:
            answer = self.read("lock", request)
        except Refused as error:
            # Its database does not serialise requests for locks: some fail.
            raise CatalogBusy(str(error)) from error
        except StorageFailed:
            # Without an answer it may have been given: by its name it is given back.
            with suppress(EngineError), self._metastore.connected() as other:
                wanted = made.ShowLocksRequest(dbname=database, tablename=name)
                for lock in other.read("show_locks", wanted).locks:
                    if lock.agentInfo == agent:
                        other.change("unlock", made.UnlockRequest(lockid=lock.lockid))
            raise
        lock_id: int = answer.lockid
        try:
            attempts = self._metastore.lock_waits.attempts()
            next(attempts)
            while answer.state == made.LockState.WAITING and next(attempts, None):
                table = self.table(database, name)
                if table is None or not expected.items() <= table.parameters.items():
                    raise CatalogBusy(f"{database}.{name} was changed by another commit")
                answer = self.read("check_lock", made.CheckLockRequest(lockid=lock_id))
            if answer.state != made.LockState.ACQUIRED:
                raise CatalogBusy(f"another writer holds the lock of {database}.{name} in {self._metastore.uri}")
        except BaseException:
            self._unlock(lock_id)
            raise
        return lock_id

    def _unlock(self, lock_id: int) -> None:
        """Give a lock back; if that fails, the metastore takes it back after a while."""
        request = idl().UnlockRequest(lockid=lock_id)
        try:
            self.change("unlock", request)
        except StorageFailed:
            with suppress(EngineError), self._metastore.connected() as other:
                other.change("unlock", request)


def _address(uri: str) -> tuple[str, int]:
    try:
        parsed = urlsplit(uri)
        if parsed.scheme == "thrift" and parsed.hostname:
            return parsed.hostname, parsed.port or _PORT
    except ValueError:
        pass
    raise Invalid(f"{uri!r} is not the address of a Hive metastore, such as thrift://host:{_PORT}")


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for the user id, as in containers
        return "icebench"
