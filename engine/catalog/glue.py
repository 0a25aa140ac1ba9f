"""A catalog in AWS Glue, as Iceberg Java's and PyIceberg's GlueCatalog keep it.

A commit is ``UpdateTable`` with the ``VersionId`` that the table had at the base: Glue refuses it if another commit
came first. Glue's client repeats a request whose answer is late, so a refusal may be that of the repeated request. In
that case, and if no answer came, the outcome is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy
from icebench.engine.catalog.metastore import (
    ICEBERG,
    LOCATION,
    TYPE,
    Database,
    Listed,
    MetastoreCatalog,
    current_schema_columns,
    is_iceberg,
    parameters_of,
)
from icebench.engine.catalog.rest_sigv4 import aws_session
from icebench.engine.commit.committer import Identifier, TableState
from icebench.engine.errors import AlreadyExists, EngineError, Invalid, NotFound, StorageFailed, Unsupported
from icebench.engine.lazy_module import LazyModule
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.properties import DATA_PATH, METADATA_PATH
from icebench.engine.storage.object_stores import flag

_CONFIG, _EXCEPTIONS = LazyModule("botocore.config"), LazyModule("botocore.exceptions")

_RENAMED = "ICEBERG_BEING_RENAMED"
"""The ``table_type`` of a table while `rename_table` makes it anew under another name."""
_KEPT = ("Description", "Owner", "Retention", "TargetTable", "ViewOriginalText", "ViewExpandedText")
"""What a table has beside what is written here."""
_RETRIES = "glue.max-retries", "10"
_SERVER_ERRORS = 500
_KEYS = (
    ("glue.access-key-id", "glue.secret-access-key", "glue.session-token"),
    ("client.access-key-id", "client.secret-access-key", "client.session-token"),
)
_ROLES = ("client.assume-role.arn", "client.role-arn")

GLUE_PROPERTIES = frozenset(
    {
        *_KEYS[0],
        "client.profile-name",
        "glue.endpoint",
        "glue.id",
        "glue.profile-name",
        "glue.region",
        "glue.skip-archive",
        _RETRIES[0],
    }
)
"""Properties that a Glue catalog reads itself, beside keys and region of ``client.``."""


class Glue:
    """Requests to AWS Glue. Thread-safe.

    Args:
        client: botocore's.
        options: What every request has: the id of the account's catalog.
        skip_archive: Whether Glue keeps no former versions of tables.
    """

    def __init__(self, client: Any, *, options: Mapping[str, str], skip_archive: bool) -> None:  # noqa: ANN401
        self._client = client
        self._options = dict(options)
        self.skip_archive = skip_archive

    def read(self, operation: str, **arguments: object) -> dict[str, Any]:
        """Ask for something; raises NotFound, StorageFailed."""
        try:
            return self.change(operation, **arguments)
        except AnswerLost as error:
            raise StorageFailed(str(error)) from error

    def change(self, operation: str, **arguments: object) -> dict[str, Any]:
        """Change something.

        Raises:
            NotFound: As Glue says, as are AlreadyExists and Invalid; nothing was changed.
            CatalogBusy: Another writer came first; nothing was changed.
            AnswerLost: Something may have been changed, if only by an attempt before the last one.
            StorageFailed: Glue refused; nothing was changed.
        """
        definite: dict[str, type[EngineError]] = {
            "EntityNotFoundException": NotFound,
            "AlreadyExistsException": AlreadyExists,
            "ConcurrentModificationException": CatalogBusy,
            "InvalidInputException": Invalid,
        }
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**self._options, **arguments)
        except _EXCEPTIONS.ClientError as error:
            about = error.response.get("ResponseMetadata", {})
            is_certain = not about.get("RetryAttempts") and about.get("HTTPStatusCode", _SERVER_ERRORS) < _SERVER_ERRORS
            kind = definite.get(error.response["Error"].get("Code", ""), StorageFailed)
            raise (kind if is_certain else AnswerLost)(f"AWS Glue: {error}") from error
        except _EXCEPTIONS.HTTPClientError as error:
            # Whatever the last attempt's failure was: one before may have been sent.
            raise AnswerLost(f"AWS Glue: {error}") from error
        except _EXCEPTIONS.BotoCoreError as error:
            raise StorageFailed(f"AWS Glue: {error}") from error
        return answer

    def pages(self, operation: str, key: str, **arguments: object) -> Iterator[dict[str, Any]]:
        """What a listing holds; raises NotFound, StorageFailed."""
        token: dict[str, str] = {}
        while True:
            answer = self.read(operation, **arguments, **token)
            yield from answer[key]
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}


def open_glue(properties: Mapping[str, str], *, endpoint: str = "") -> Glue:
    """A client by catalog properties; keys and region are those of ``glue.``, else of ``client.``, else AWS's own.

    Raises:
        NotInstalled: botocore is not installed.
        Invalid: A property's value, or no region.
        Unsupported: A role to assume.
    """
    for name in _ROLES:
        if name in properties:
            raise Unsupported(f"property {name} of a glue catalog: roles; AWS's own configuration may name one")
    profile = properties.get("glue.profile-name", properties.get("client.profile-name"))
    session = aws_session({} if profile is None else {"client.profile-name": profile}, "a glue catalog")
    keys = next((names for names in _KEYS if names[0] in properties), _KEYS[0])
    retries = properties.get(*_RETRIES)
    if not retries.isdecimal():
        raise Invalid(f"{_RETRIES[0]}={retries!r} is not a number of retries")
    try:
        client = session.create_client(
            "glue",
            region_name=properties.get("glue.region", properties.get("client.region")),
            endpoint_url=properties.get("glue.endpoint", endpoint) or None,
            aws_access_key_id=properties.get(keys[0]),
            aws_secret_access_key=properties.get(keys[1]),
            aws_session_token=properties.get(keys[2]),
            config=_CONFIG.Config(retries={"mode": "standard", "total_max_attempts": int(retries) + 1}),
        )
    except (_EXCEPTIONS.BotoCoreError, ValueError) as error:
        raise Invalid(f"a glue catalog: {error}") from None
    options = {"CatalogId": properties["glue.id"]} if "glue.id" in properties else {}
    skips = flag("glue.skip-archive", properties.get("glue.skip-archive", "true"))
    return Glue(client, options=options, skip_archive=skips)


class GlueCatalog(MetastoreCatalog):
    """Tables in AWS Glue. Dropping a table keeps its files.

    Args:
        glue: The service.
        options: As `icebench.engine.catalog.pointers.PointerCatalog`.
    """

    _service = "AWS Glue"

    def __init__(self, glue: Glue, **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self._glue = glue

    def close(self) -> None:
        """Nothing to close."""

    # Tables.

    def _table(self, identifier: Identifier) -> dict[str, Any] | None:
        try:
            answer = self._glue.read("get_table", DatabaseName=identifier[0], Name=identifier[1])
        except NotFound:
            return None
        table: dict[str, Any] = answer["Table"]
        return table

    def _parameters(self, identifier: Identifier) -> Mapping[str, str] | None:
        table = self._table(identifier)
        return None if table is None else table.get("Parameters", {})

    def _tables(self, database: str) -> Iterator[Listed]:
        for table in self._glue.pages("get_tables", "TableList", DatabaseName=database):
            location = table.get("StorageDescriptor", {}).get("Location")
            yield Listed(name=table["Name"], parameters=table.get("Parameters", {}), location=location)

    def _add(self, identifier: Identifier, state: TableState, *, is_new: bool) -> None:
        self._ensure_database(self._checked(identifier)[0])
        if is_new:
            self._check_alone(identifier, state)
        self._create(identifier, _input({}, state, None))

    def _create(self, identifier: Identifier, given: Mapping[str, Any]) -> None:
        try:
            self._glue.change("create_table", DatabaseName=identifier[0], TableInput={**given, "Name": identifier[1]})
        except AlreadyExists as error:
            raise AlreadyExists(f"{dotted(identifier)} exists already") from error

    def _point(self, identifier: Identifier, base: TableState, new: TableState) -> bool:
        table = self._table(identifier)
        if table is None or table.get("Parameters", {}).get(LOCATION) != base.metadata_location:
            return False
        self._update(identifier, table, _input(table, new, base))
        return True

    def _update(self, identifier: Identifier, table: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Replace a table as it was read; raises CatalogBusy where it was changed since."""
        if not table.get("VersionId"):
            raise Unsupported(f"{dotted(identifier)}: the service returns no version of the table to compare with")
        self._glue.change(
            "update_table",
            DatabaseName=identifier[0],
            TableInput={**given, "Name": identifier[1]},
            SkipArchive=self._glue.skip_archive,
            VersionId=table["VersionId"],
        )

    def _move(self, old: Identifier, new: Identifier, kind: str) -> bool:
        """Glue cannot rename: the table is created under the new name, and the former one deleted. In between it is no
        Iceberg table, so no other writer can commit to it and lose the commit. If this is interrupted in between,
        renaming again resumes it."""
        table = self._table(old)
        if table is None:
            return False
        parameters = table.get("Parameters", {})
        is_begun = parameters.get(TYPE) == _RENAMED
        if not is_begun and not is_iceberg(parameters):
            return self._has(old)
        there = self._parameters(new)
        if there is not None and not (is_begun and there.get(LOCATION) == parameters[LOCATION]):
            raise AlreadyExists(f"{dotted(new)} exists already")
        self._ensure_database(new[0])
        whole = {key: table[key] for key in (*_KEPT, "TableType", "StorageDescriptor") if key in table}
        whole["Parameters"] = {**parameters, TYPE: ICEBERG}
        self._update(old, table, {**whole, "Parameters": {**parameters, TYPE: _RENAMED}})
        try:
            if there is None:
                self._create(new, whole)
        except AnswerLost:
            if self._pointer(new) != parameters[LOCATION]:
                raise
        except EngineError:
            self._glue.change("update_table", DatabaseName=old[0], TableInput={**whole, "Name": old[1]})
            raise
        self._glue.change("delete_table", DatabaseName=old[0], Name=old[1])
        return True

    def _remove(self, identifier: Identifier, kind: str, base: str | None) -> bool:
        # The service does not compare: a rename in this moment is missed.
        if not self._is_at(identifier, base):
            return False
        try:
            self._glue.change("delete_table", DatabaseName=identifier[0], Name=identifier[1])
        except NotFound:
            return False
        return True

    # Namespaces.

    def drop_namespace(self, namespace: Namespace) -> None:
        name = self._existing(namespace)
        # Glue would drop what it holds, too. A table that is made in this moment is lost.
        held = next(self._tables(name), None)
        if held is not None:
            raise Invalid(f"namespace {name} is not empty: it holds {held.name}")
        self._glue.change("delete_database", Name=name)

    def _databases(self) -> list[str]:
        return [each["Name"] for each in self._glue.pages("get_databases", "DatabaseList")]

    def _find_database(self, name: str) -> Database | None:
        if name != name.lower():
            return None
        try:
            found = self._glue.read("get_database", Name=name)["Database"]
        except NotFound:
            return None
        return Database(
            location=found.get("LocationUri"), comment=found.get("Description"), parameters=found.get("Parameters", {})
        )

    def _create_database(self, name: str, database: Database) -> None:
        self._glue.change("create_database", DatabaseInput=_database_input(name, database))

    def _alter_database(self, name: str, database: Database) -> None:
        self._glue.change("update_database", Name=name, DatabaseInput=_database_input(name, database))


def _database_input(name: str, database: Database) -> dict[str, Any]:
    given: dict[str, Any] = {"Name": name, "Parameters": dict(database.parameters)}
    given |= {"LocationUri": database.location} if database.location else {}
    return given | ({"Description": database.comment} if database.comment else {})


def _input(present: Mapping[str, Any], state: TableState, base: TableState | None) -> dict[str, Any]:
    """The table as Glue stores it, without its name."""
    metadata = state.metadata
    described = {"Columns": _columns(metadata), "Location": metadata.location}
    elsewhere = [place for each in (DATA_PATH, METADATA_PATH) if (place := each.of(metadata.properties))]
    given = {key: present[key] for key in _KEPT if key in present}
    given |= {"Description": metadata.properties["comment"]} if metadata.properties.get("comment") else {}
    return {
        **given,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": parameters_of(state, present=present.get("Parameters", {}), base=base),
        "StorageDescriptor": {**described, **({"AdditionalLocations": elsewhere} if elsewhere else {})},
    }


def _columns(metadata: TableMetadata) -> list[dict[str, Any]]:
    """The current columns."""
    made = []
    for each, (name, of, doc) in zip(metadata.schema.fields, current_schema_columns(metadata), strict=True):
        column: dict[str, Any] = {"Name": name, "Type": of}
        column |= {"Comment": doc[:255]} if doc else {}
        known = {"id": str(each.field_id), "optional": str(not each.required).lower(), "current": "true"}
        made.append({**column, "Parameters": {f"iceberg.field.{key}": value for key, value in known.items()}})
    return made
