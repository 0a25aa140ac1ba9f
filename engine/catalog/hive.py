"""A catalog in a Hive metastore, as Iceberg Java's and PyIceberg's HiveCatalog keep it.

A commit replaces the metastore's table under the metastore's exclusive lock, after checking that it is still at the
base; and it sends the expected parameters, which metastores with HIVE-26882 compare in the transaction.
Neither is enough alone: other metastores ignore the expected parameters, a lock expires if its holder is slow, and
other writers use only the lock, or only the expected parameters (``engine.hive.lock-enabled``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.hive_client import Connection, Metastore, Refused, RequestPending, idl
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.lost_changes import AnswerLost
from icebench.engine.catalog.metastore import (
    LOCATION,
    Database,
    Listed,
    MetastoreCatalog,
    current_schema_columns,
    parameters_of,
)
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.errors import AlreadyExists, Invalid, NotFound, StorageFailed

_PLAIN = (
    "org.apache.hadoop.mapred.FileInputFormat",
    "org.apache.hadoop.mapred.FileOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_FOR_HIVE = tuple(f"org.apache.iceberg.mr.hive.HiveIceberg{part}" for part in ("InputFormat", "OutputFormat", "SerDe"))
_STORAGE_HANDLER = "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
_BATCH = 300
_ZONED = "timestamp with local time zone"

HIVE2 = "hive.hive2-compatible"
HIVE_PROPERTIES = frozenset({"ugi", HIVE2})
"""Properties that a Hive catalog reads itself."""


class HiveCatalog(MetastoreCatalog):
    """Tables in a Hive metastore. Dropping a table keeps its files.

    Args:
        metastore: The metastore.
        is_hive2: Whether Hive 2 reads the columns, which has no timestamp with time zone.
        options: As `icebench.engine.catalog.pointers.PointerCatalog`.
    """

    _service = "a Hive metastore"

    def __init__(self, metastore: Metastore, *, is_hive2: bool = False, **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self._metastore = metastore
        self._zoned = "timestamp" if is_hive2 else _ZONED

    def close(self) -> None:
        self._metastore.close()

    # Tables.

    def _parameters(self, identifier: Identifier) -> Mapping[str, str] | None:
        with self._metastore.connected() as server:
            table = server.table(*identifier)
        return None if table is None else table.parameters or {}

    def _tables(self, database: str) -> Iterator[Listed]:
        with self._metastore.connected() as server:
            names = server.read("get_all_tables", database)
            for start in range(0, len(names), _BATCH):
                request = idl().GetTablesRequest(dbName=database, tblNames=names[start : start + _BATCH])
                for table in server.read("get_table_objects_by_name_req", request).tables:
                    location = table.sd and table.sd.location
                    yield Listed(name=table.tableName, parameters=table.parameters or {}, location=location)

    def _add(self, identifier: Identifier, state: TableState, *, is_new: bool) -> None:
        self._ensure_database(self._checked(identifier)[0])
        if is_new:
            self._check_alone(identifier, state)
        now = self._now_ms() // 1000
        table = idl().Table(
            dbName=identifier[0],
            tableName=identifier[1],
            owner=self._metastore.user,
            createTime=now,
            lastAccessTime=now,
            retention=2**31 - 1,
            partitionKeys=[],
            parameters={"EXTERNAL": "TRUE"},
            tableType="EXTERNAL_TABLE",
        )
        self._describe(table, state, None)
        with self._metastore.connected() as server:
            try:
                server.change("create_table", table)
            except (AlreadyExists, Refused) as error:
                # Its own second attempt may have found what the first one made.
                found = self._parameters(identifier)
                if found is None:
                    raise
                if not is_new or found.get(LOCATION) != state.metadata_location:
                    raise AlreadyExists(f"{dotted(identifier)} exists already") from error

    def _point(self, identifier: Identifier, base: TableState, new: TableState) -> bool:
        expected = {LOCATION: base.metadata_location}
        with self._metastore.connected() as server, self._locked(server, identifier, base, expected):
            table = server.table(*identifier)
            if table is None or table.parameters.get(LOCATION) != base.metadata_location:
                return False
            self._describe(table, new, base)
            try:
                server.alter(identifier, table, expected)
            except Invalid as error:
                raise Invalid(
                    f"{error} (column types: hive.metastore.disallow.incompatible.col.type.changes)"
                ) from error
            except Refused as error:
                # Answered: nothing is under way. Its own second attempt may have failed where the first did not.
                now = self._pointer(identifier)
                if now == base.metadata_location:
                    raise StorageFailed(str(error)) from error
                if now != new.metadata_location:
                    raise AnswerLost(str(error)) from error
            except RequestPending:
                if not self._appears(identifier, new.metadata_location):
                    raise
        return True

    def _move(self, old: Identifier, new: Identifier, kind: str) -> bool:
        if not self._has(old):
            return False
        if self._parameters(new) is not None:
            raise AlreadyExists(f"{dotted(new)} exists already")
        self._ensure_database(new[0])
        with self._metastore.connected() as server, server.locked(old, {}):
            table = server.table(*old)
            if table is None:
                return False
            # The whole table is replaced: a commit that came in between would be lost.
            expected = {LOCATION: table.parameters[LOCATION]}
            table.dbName, table.tableName = new
            try:
                server.alter(old, table, expected)
            except (Invalid, Refused) as error:
                found = self._parameters(new)
                if found is None:
                    raise
                if found.get(LOCATION) != expected[LOCATION]:
                    raise AlreadyExists(f"{dotted(new)} exists already") from error
            except RequestPending:
                if not self._appears(new, expected[LOCATION]):
                    raise
        return True

    def _appears(self, identifier: Identifier, location: str) -> bool:
        """Whether a table comes to be at a metadata file, by a request that may still be carried out. Meanwhile the
        lock is held: a metastore that does not compare could carry it out after the next writer's commit."""
        for _ in self._metastore.late_waits.attempts():
            with suppress(StorageFailed):
                if self._pointer(identifier) == location:
                    return True
        return False

    def _remove(self, identifier: Identifier, kind: str, base: str | None) -> bool:
        # The service does not compare: a rename in this moment is missed.
        if not self._is_at(identifier, base):
            return False
        with self._metastore.connected() as server:
            try:
                server.change("drop_table", *identifier, False)
            except NotFound:
                return False
            except Refused:
                if self._parameters(identifier) is not None:
                    raise
        return True

    def _locked(
        self, server: Connection, identifier: Identifier, base: TableState, expected: Mapping[str, str]
    ) -> AbstractContextManager[None]:
        # Who sets this property says that the metastore compares what is expected.
        if base.metadata.properties.get("engine.hive.lock-enabled", "true").lower() == "false":
            return nullcontext()
        return server.locked(identifier, expected)

    def _describe(self, table: Any, state: TableState, base: TableState | None) -> None:  # noqa: ANN401
        """Have a table of the IDL describe a state; what others said of how Hive reads it stays."""
        made, metadata = idl(), state.metadata
        table.parameters = parameters_of(state, present=table.parameters or {}, base=base)
        # Else the metastore counts the files in the table's directory.
        table.parameters["DO_NOT_UPDATE_STATS"] = "true"
        table.sd = table.sd or made.StorageDescriptor(compressed=False, numBuckets=0, bucketCols=[], sortCols=[])
        table.sd.location = metadata.location
        columns = current_schema_columns(metadata, zoned=self._zoned)
        table.sd.cols = [made.FieldSchema(name=name, type=of, comment=doc) for name, of, doc in columns]
        said = metadata.properties.get("engine.hive.enabled")
        if said is not None or table.sd.serdeInfo is None:
            is_for_hive = said is not None and said.lower() == "true"
            table.sd.inputFormat, table.sd.outputFormat, serde = _FOR_HIVE if is_for_hive else _PLAIN
            table.sd.serdeInfo = made.SerDeInfo(serializationLib=serde, parameters={})
            table.parameters.pop("storage_handler", None)
            if is_for_hive:
                table.parameters["storage_handler"] = _STORAGE_HANDLER

    # Namespaces.

    def drop_namespace(self, namespace: Namespace) -> None:
        name = self._existing(namespace)
        with self._metastore.connected() as server:
            try:
                server.change("drop_database", name, False, False)
            except Invalid as error:
                raise Invalid(f"namespace {name} is not empty: {error}") from error

    def _databases(self) -> list[str]:
        with self._metastore.connected() as server:
            names: list[str] = server.read("get_all_databases")
        return names

    def _find_database(self, name: str) -> Database | None:
        found = self._get_database(name)
        if found is None:
            return None
        return Database(location=found.locationUri, comment=found.description, parameters=found.parameters or {})

    def _create_database(self, name: str, database: Database) -> None:
        self._change_database("create_database", self._described(idl().Database(name=name), database))

    def _alter_database(self, name: str, database: Database) -> None:
        found = self._get_database(name)
        if found is not None:
            self._change_database("alter_database", name, self._described(found, database))

    def _get_database(self, name: str) -> Any:  # noqa: ANN401 - a Database of the IDL
        if name != name.lower():
            return None
        with self._metastore.connected() as server:
            try:
                return server.read("get_database", name)
            except NotFound:
                return None

    def _change_database(self, method: str, *arguments: object) -> None:
        with self._metastore.connected() as server:
            server.change(method, *arguments)

    def _described(self, made: Any, database: Database) -> Any:  # noqa: ANN401 - a Database of the IDL
        made.description = database.comment
        made.locationUri = database.location
        made.parameters = dict(database.parameters)
        made.ownerName = made.ownerName or self._metastore.user
        made.ownerType = made.ownerType or idl().PrincipalType.USER
        return made
