"""A catalog behind the Iceberg REST protocol (``rest-catalog-open-api.yaml``).

The server writes metadata files and decides commits; the client sends requirements and updates. A commit is sent once,
or with an idempotency key until it is answered. Its answer is one of: success; 409, another commit came first; any
other 4xx, it was refused; and everything else (5xx, a timeout, a broken connection, an unreadable answer) is `Unknown`:
only the table itself shows the outcome. Even a 409 may result from the commit's own success, if a gateway sent the
request twice; `icebench.engine.commit.commit_loop` looks for the snapshot before it tries again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TypeVar

from icebench.engine.catalog.catalog import Namespace, not_as_loaded
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.lost_changes import settle
from icebench.engine.catalog.rest_confirmed import NESSIE, check_confirmed, check_nessie_carries_out
from icebench.engine.catalog.rest_errors import NoSuchFile, NoSuchNamespace, error_of, server_error
from icebench.engine.catalog.rest_http import AnswerLost
from icebench.engine.catalog.rest_session import SESSION_PROPERTIES, Endpoint, Request, Session
from icebench.engine.catalog.rest_signing import SIGNING_PROPERTIES, remote_signer
from icebench.engine.catalog.rest_stores import TableStores, Vended
from icebench.engine.codec.metadata_json.objects import JsonObject
from icebench.engine.codec.metadata_json.rest import (
    LoadedTable,
    commit_to_json,
    create_table_to_json,
    credentials_from_json,
    identifiers_from_json,
    namespace_to_json,
    namespaces_from_json,
    properties_to_json,
    register_to_json,
    rename_to_json,
    table_from_json,
)
from icebench.engine.commit.committer import Committed, Conflicted, Identifier, Outcome, TableState, Unknown
from icebench.engine.errors import (
    AlreadyExists,
    CommitConflict,
    CommitStateUnknown,
    EngineError,
    FileNotFound,
    Invalid,
    NotFound,
)
from icebench.engine.spec.creation import creation_updates
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.requirements import AssertCreate, TableRequirement
from icebench.engine.spec.updates import TableUpdate
from icebench.engine.storage.store import Store

T = TypeVar("T")

_NAMESPACES = "/v1/{prefix}/namespaces"
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLES = "/v1/{prefix}/namespaces/{namespace}/tables"
_TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"

LIST_NAMESPACES = Endpoint("GET", _NAMESPACES)
CREATE_NAMESPACE = Endpoint("POST", _NAMESPACES)
LOAD_NAMESPACE = Endpoint("GET", _NAMESPACE)
HAS_NAMESPACE = Endpoint("HEAD", _NAMESPACE)
DROP_NAMESPACE = Endpoint("DELETE", _NAMESPACE)
UPDATE_NAMESPACE = Endpoint("POST", f"{_NAMESPACE}/properties")
LIST_TABLES = Endpoint("GET", _TABLES)
CREATE_TABLE = Endpoint("POST", _TABLES)
REGISTER_TABLE = Endpoint("POST", f"{_NAMESPACE}/register")
LOAD_TABLE = Endpoint("GET", _TABLE)
HAS_TABLE = Endpoint("HEAD", _TABLE)
COMMIT_TABLE = Endpoint("POST", _TABLE)
DROP_TABLE = Endpoint("DELETE", _TABLE)
LOAD_CREDENTIALS = Endpoint("GET", f"{_TABLE}/credentials")
RENAME_TABLE = Endpoint("POST", "/v1/{prefix}/tables/rename")

REST_PROPERTIES = SESSION_PROPERTIES | SIGNING_PROPERTIES
"""Properties that a REST catalog reads itself."""

_DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}
_BAD_REQUEST, _CONFLICT, _TOO_MANY_REQUESTS = 400, 409, 429
_KEPT = 16


class RestCatalog:
    """Tables of a REST server.

    Args:
        session: The server.
        name: For messages.
    """

    def __init__(self, session: Session, *, name: str = "default") -> None:
        self._session = session
        self._name = name
        self._stores = TableStores(session.properties, session.now_ms)
        self._lock = Lock()
        self._loaded: OrderedDict[Identifier, tuple[str, TableState]] = OrderedDict()

    @property
    def name(self) -> str:
        return self._name

    def close(self) -> None:
        self._session.close()

    def store_at(self, location: str) -> Store:
        return self._stores(location)

    def storage_options(self, location: str) -> dict[str, str]:
        """The client's options, with those that the server gave with the table at `location`; raises Unsupported."""
        return self._stores.options(location)

    def default_location(self, identifier: Identifier) -> str:
        """Empty: the server chooses the location."""
        return ""

    # Tables.

    def load_state(self, identifier: Identifier) -> TableState:
        with self._lock:
            etag, known = self._loaded.get(identifier, ("", None))
        if known is not None and not self._stores.is_fresh(known.metadata.location):
            # An answer of 304 brings no new credentials.
            known = None
        request = self._load_request(identifier, {} if known is None else {"If-None-Match": etag})
        answer = self._session.call(request)
        if answer.status == 304 and known is not None:
            return known
        if not answer.is_success:
            raise error_of(answer, self._session.http.secrets, subject=request.subject)
        state = self._state(answer.json(), request, identifier)
        with self._lock:
            self._loaded.pop(identifier, None)
            tag = answer.header("etag")
            if tag:
                self._loaded[identifier] = (tag, state)
                while len(self._loaded) > _KEPT:
                    self._loaded.popitem(last=False)
        return state

    def table_exists(self, identifier: Identifier) -> bool:
        # A server that does not offer HEAD is asked for the table itself, as Iceberg Java does.
        endpoint = HAS_TABLE if self._session.offers(HAS_TABLE) else LOAD_TABLE
        return self._exists(self._request(endpoint, identifier))

    def stage_table(self, identifier: Identifier, metadata: TableMetadata) -> TableMetadata:
        body = create_table_to_json(identifier[-1], metadata, is_staged=True)
        request = self._request(CREATE_TABLE, identifier, body=body, default_headers=_DELEGATION)

        def stage() -> LoadedTable:
            return table_from_json(self._session.ask(request).json())

        loaded = self._in_namespace(identifier[:-1], stage)
        # Before the table is there, only staging it again gives new credentials.
        self._learn(loaded, request, identifier, renew=lambda: Vended.of(stage()))
        return loaded.metadata

    def create_table(self, identifier: Identifier, metadata: TableMetadata, *, is_staged: bool = False) -> TableState:
        """Create a table with the metadata's schema, spec, sort order, format version and properties.

        The server gives UUID and time, and the location where the metadata has none; it may add properties. Errors as
        `Catalog.create_table`.
        """
        if is_staged:
            return self._create_staged(identifier, metadata)
        request = self._request(
            CREATE_TABLE, identifier, body=create_table_to_json(identifier[-1], metadata), default_headers=_DELEGATION
        )
        answer = self._in_namespace(identifier[:-1], lambda: self._session.ask(request))
        return self._state(answer.json(), request, identifier)

    def _create_staged(self, identifier: Identifier, metadata: TableMetadata) -> TableState:
        base = TableState(metadata=metadata, metadata_location="")
        outcome = self.commit(identifier, base, [AssertCreate()], creation_updates(metadata))
        if isinstance(outcome, Committed):
            return outcome.state
        found, unseen = _look(lambda: self.load_state(identifier))
        if found is not None and found.metadata.table_uuid == metadata.table_uuid:
            return found
        lost = outcome.cause if isinstance(outcome, Unknown) else None if outcome.is_certain else unseen
        if lost is not None:
            raise CommitStateUnknown(f"whether table {dotted(identifier)} was created is not known: {lost}") from lost
        assert isinstance(outcome, Conflicted)
        if outcome.error is not None:
            raise outcome.error
        if outcome.is_certain:
            raise CommitConflict(outcome.reason)
        raise AlreadyExists(f"table {dotted(identifier)} exists already: {outcome.reason}")

    def register_table(self, identifier: Identifier, metadata_location: str) -> TableState:
        request = self._request(
            REGISTER_TABLE,
            identifier,
            body=register_to_json(identifier[-1], metadata_location),
            default_headers=_DELEGATION,
        )
        try:
            answer = self._in_namespace(identifier[:-1], lambda: self._session.ask(request))
        except NoSuchFile as error:
            raise FileNotFound(metadata_location, request.subject) from error
        return self._state(answer.json(), request, identifier)

    def commit(
        self,
        identifier: Identifier,
        base: TableState,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
    ) -> Outcome:
        # The protocol has requirements and no base.
        request = self._request(COMMIT_TABLE, identifier, body=commit_to_json(identifier, requirements, updates))
        hidden = self._session.http.secrets
        if self._session.properties.get(NESSIE) == "true":
            check_nessie_carries_out(updates, base.metadata, subject=request.subject)
        try:
            answer = self._session.call(request)
        except AnswerLost as lost:
            return Unknown(cause=lost)
        if answer.status in (_CONFLICT, _TOO_MANY_REQUESTS):
            reason = server_error(answer, hidden).message or f"{request.subject}: HTTP {answer.status}"
            # A gateway may have sent the request twice; one that was turned away for the load never ran.
            return Conflicted(reason, is_certain=answer.status == _TOO_MANY_REQUESTS)
        if not answer.is_success:
            error = error_of(answer, hidden, subject=request.subject)
            if isinstance(error, CommitStateUnknown):
                return Unknown(cause=error)
            if answer.status == _BAD_REQUEST:
                # Of a request that came twice the second is refused because the first was carried out.
                return Conflicted(str(error), is_certain=False, error=error)
            raise error
        try:
            loaded = table_from_json(answer.json())
        except EngineError as error:
            # Apparently committed, but the answer cannot be read: the table will show.
            return Unknown(cause=error)
        check_confirmed(updates, loaded.metadata, subject=request.subject)
        return Committed(TableState(metadata=loaded.metadata, metadata_location=loaded.metadata_location))

    def list_tables(self, namespace: Namespace) -> list[Identifier]:
        request = self._namespace_request(LIST_TABLES, namespace)
        return self._listed(sorted(self._session.pages(request, identifiers_from_json)), namespace)

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        self._rename(RENAME_TABLE, "table", old, new, lambda name: self.load_state(name).metadata.table_uuid)
        with self._lock:
            self._loaded.pop(old, None)

    def drop_table(self, identifier: Identifier, *, base: TableState | None = None, purge: bool = False) -> None:
        """Drop a table, as `Catalog.drop_table`. With `purge` the server is asked to delete its files, too."""
        # The protocol cannot compare: a rename in this moment is missed.
        if base is not None and self.load_state(identifier) != base:
            raise not_as_loaded(identifier)
        query = {"purgeRequested": "true" if purge else "false"}
        self._drop(self._request(DROP_TABLE, identifier, query=query), lambda: self.table_exists(identifier))
        with self._lock:
            self._loaded.pop(identifier, None)

    # Namespaces.

    def namespace_exists(self, namespace: Namespace) -> bool:
        endpoint = HAS_NAMESPACE if self._session.offers(HAS_NAMESPACE) else LOAD_NAMESPACE
        return self._exists(self._namespace_request(endpoint, namespace))

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        subject = f"namespace {dotted(namespace)}"
        body = namespace_to_json(namespace, properties or {})
        request = Request(endpoint=CREATE_NAMESPACE, subject=subject, body=body)
        self._in_namespace(namespace[:-1], lambda: self._session.ask(request))

    def drop_namespace(self, namespace: Namespace) -> None:
        try:
            self._session.ask(self._namespace_request(DROP_NAMESPACE, namespace))
        except AlreadyExists as error:
            # 409 has one meaning here, whatever the server calls it.
            raise Invalid(str(error)) from error

    def list_namespaces(self, parent: Namespace = ()) -> list[Namespace]:
        query = {"parent": self._session.encode_namespace(parent)} if parent else {}
        subject = f"namespaces below {dotted(parent)}" if parent else "namespaces"
        request = Request(endpoint=LIST_NAMESPACES, subject=subject, query=query)
        return self._listed(sorted(self._session.pages(request, namespaces_from_json)), parent)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        answer = self._session.ask(self._namespace_request(LOAD_NAMESPACE, namespace))
        return answer.json().text_map("properties")

    def update_namespace_properties(
        self, namespace: Namespace, updates: Mapping[str, str], removals: Collection[str] = ()
    ) -> None:
        both = sorted(set(updates) & set(removals))
        if both:
            # Nessie sets it.
            raise Invalid(f"namespace property {both[0]!r} is both to set and to remove")
        body = properties_to_json(updates, removals)
        self._session.ask(self._namespace_request(UPDATE_NAMESPACE, namespace, body=body))

    # Names. A gateway may send a request twice, so that its own success refuses the second.

    def _rename(
        self, endpoint: Endpoint, kind: str, old: Identifier, new: Identifier, uuid_of: Callable[[Identifier], str]
    ) -> None:
        subject = f"renaming {kind} {dotted(old)} to {dotted(new)}"
        request = Request(endpoint=endpoint, subject=subject, body=rename_to_json(old, new))
        known, unseen = _look(lambda: uuid_of(old))
        try:
            self._in_namespace(new[:-1], lambda: self._session.ask(request))
        except NoSuchNamespace:
            raise
        except (CommitStateUnknown, NotFound, AlreadyExists) as error:
            if not isinstance(error, CommitStateUnknown) and known is None and unseen is None:
                raise
            if isinstance(error, AlreadyExists) and known is not None and _look(lambda: uuid_of(old))[0] == known:
                raise
            what = f"{kind} {dotted(old)} was renamed to {dotted(new)}"
            settle(what, lambda: known is not None and uuid_of(new) == known, error)

    def _drop(self, request: Request, exists: Callable[[], bool]) -> None:
        was_there, unseen = _look(exists)
        try:
            self._session.ask(request)
        except NotFound as error:
            if unseen is not None:
                raise CommitStateUnknown(f"whether {request.subject} was dropped is not known: {error}") from error
            if not was_there:
                raise
        except CommitStateUnknown as lost:
            settle(f"{request.subject} was dropped", lambda: not exists(), lost)

    # Requests.

    def _request(
        self,
        endpoint: Endpoint,
        identifier: Identifier,
        *,
        kind: str = "table",
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        default_headers: Mapping[str, str] | None = None,
    ) -> Request:
        return Request(
            endpoint=endpoint,
            subject=f"{kind} {dotted(identifier)}",
            namespace=identifier[:-1],
            name=identifier[-1],
            query=query or {},
            body=body,
            headers=headers or {},
            default_headers=default_headers or {},
        )

    def _load_request(self, identifier: Identifier, headers: Mapping[str, str] | None = None) -> Request:
        return self._request(LOAD_TABLE, identifier, headers=headers, default_headers=_DELEGATION)

    def _namespace_request(
        self, endpoint: Endpoint, namespace: Namespace, body: Mapping[str, object] | None = None
    ) -> Request:
        return Request(endpoint=endpoint, subject=f"namespace {dotted(namespace)}", namespace=namespace, body=body)

    def _request_credentials(self, identifier: Identifier, config: Mapping[str, str]) -> Vended:
        """Request new credentials for a table's files; `config` is the one it was loaded with."""
        if self._session.offers(LOAD_CREDENTIALS):
            answer = self._session.ask(self._request(LOAD_CREDENTIALS, identifier))
            credentials = credentials_from_json(answer.json())
            if credentials:
                return Vended(config, credentials)
        return Vended.of(table_from_json(self._session.ask(self._load_request(identifier)).json()))

    def _state(self, node: JsonObject, request: Request, identifier: Identifier) -> TableState:
        loaded = table_from_json(node)
        renew = partial(self._request_credentials, identifier, loaded.config)
        self._learn(loaded, request, identifier, renew)
        return TableState(metadata=loaded.metadata, metadata_location=loaded.metadata_location)

    def _learn(
        self, loaded: LoadedTable, request: Request, identifier: Identifier, renew: Callable[[], Vended]
    ) -> None:
        signer = partial(remote_signer, self._session, identifier, loaded.signing)
        self._stores.learn(loaded, subject=request.subject, renew=renew, signer=signer)

    def _exists(self, request: Request) -> bool:
        try:
            self._session.ask(request)
        except NotFound:
            return False
        return True

    def _listed(self, found: list[Identifier], namespace: Namespace) -> list[Identifier]:
        """What was found in a namespace; raises NotFound where there is none, for which Nessie finds nothing."""
        if not found and namespace and not self.namespace_exists(namespace):
            raise NoSuchNamespace(f"namespace {dotted(namespace)} does not exist")
        return found

    def _in_namespace(self, namespace: Namespace, ask: Callable[[], T]) -> T:
        """The result of `ask`; a missing namespace is created first, as the engine's catalogs do not require one."""
        try:
            return ask()
        except NoSuchNamespace:
            self._make_namespaces(namespace)
        except AlreadyExists:
            # Nessie's answer, too, where more than one level is missing.
            if len(namespace) < 2 or _look(lambda: self.namespace_exists(namespace))[0] is not False:
                raise
            self._make_namespaces(namespace)
        return ask()

    def _make_namespaces(self, namespace: Namespace) -> None:
        for depth in range(1, len(namespace) + 1):
            level = namespace[:depth]
            request = Request(
                endpoint=CREATE_NAMESPACE, subject=f"namespace {dotted(level)}", body=namespace_to_json(level, {})
            )
            with suppress(AlreadyExists):
                self._session.ask(request)


def _look(look: Callable[[], T]) -> tuple[T | None, EngineError | None]:
    """What a lookup of a name finds, or the error because of which that is unknown; neither if nothing is there."""
    try:
        return look(), None
    except NotFound:
        return None, None
    except EngineError as error:
        return None, error
