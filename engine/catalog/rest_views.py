"""Views of a REST catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_errors import error_of
from icebench.engine.catalog.rest_http import Answer
from icebench.engine.catalog.rest_session import Endpoint
from icebench.engine.catalog.views import ViewState
from icebench.engine.codec.metadata_json.rest import (
    create_view_to_json,
    identifiers_from_json,
    replace_view_to_json,
    view_result_from_json,
)
from icebench.engine.commit.committer import Identifier
from icebench.engine.commit.retry import Waiting
from icebench.engine.errors import CommitConflict, CommitStateUnknown
from icebench.engine.spec.properties import VIEW_HISTORY_SIZE
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.views import ViewVersion

_VIEWS = "/v1/{prefix}/namespaces/{namespace}/views"
_VIEW = "/v1/{prefix}/namespaces/{namespace}/views/{view}"

LIST_VIEWS = Endpoint("GET", _VIEWS)
CREATE_VIEW = Endpoint("POST", _VIEWS)
LOAD_VIEW = Endpoint("GET", _VIEW)
HAS_VIEW = Endpoint("HEAD", _VIEW)
REPLACE_VIEW = Endpoint("POST", _VIEW)
DROP_VIEW = Endpoint("DELETE", _VIEW)
RENAME_VIEW = Endpoint("POST", "/v1/{prefix}/views/rename")

_CONFLICTS = (409, 429)


class RestViewCatalog(RestCatalog):
    """Tables and views of a REST server."""

    def create_view(
        self,
        identifier: Identifier,
        definition: ViewVersion,
        schema: Schema,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ViewState:
        VIEW_HISTORY_SIZE.of(properties or {})  # the server may accept what no later version can be made with
        # The schema's id is the server's to give; the version refers to the one in the same request.
        first = replace(definition, version_id=1, schema_id=0)
        body = create_view_to_json(identifier[-1], first, replace(schema, schema_id=0), location, properties or {})
        request = self._request(CREATE_VIEW, identifier, kind="view", body=body)
        return _view(self._in_namespace(identifier[:-1], lambda: self._session.ask(request)))

    def load_view(self, identifier: Identifier) -> ViewState:
        return _view(self._session.ask(self._request(LOAD_VIEW, identifier, kind="view")))

    def view_exists(self, identifier: Identifier) -> bool:
        endpoint = HAS_VIEW if self._session.offers(HAS_VIEW) else LOAD_VIEW
        return self._exists(self._request(endpoint, identifier, kind="view"))

    def replace_view(self, identifier: Identifier, definition: ViewVersion, schema: Schema) -> ViewState:
        state = self.load_view(identifier)
        for attempt in Waiting().for_commits(state.metadata.properties).attempts():
            if attempt > 1:
                state = self.load_view(identifier)
            wanted = state.metadata.with_definition(definition, schema)
            if wanted is state.metadata:
                return state
            body = replace_view_to_json(identifier, state.metadata, wanted)
            request = self._request(REPLACE_VIEW, identifier, kind="view", body=body)
            try:
                answer = self._session.call(request)
                if answer.is_success:
                    return _view(answer)
                if answer.status in _CONFLICTS:
                    continue
                raise error_of(answer, self._session.http.secrets, subject=request.subject)
            except CommitStateUnknown as lost:
                return self._load_expected(identifier, definition, schema, lost)
        raise CommitConflict(f"view {dotted(identifier)} was changed by others at every attempt")

    def list_views(self, namespace: Namespace) -> list[Identifier]:
        request = self._namespace_request(LIST_VIEWS, namespace)
        return self._listed(sorted(self._session.pages(request, identifiers_from_json)), namespace)

    def rename_view(self, old: Identifier, new: Identifier) -> None:
        self._rename(RENAME_VIEW, "view", old, new, lambda name: self.load_view(name).metadata.view_uuid)

    def drop_view(self, identifier: Identifier) -> None:
        self._drop(self._request(DROP_VIEW, identifier, kind="view"), lambda: self.view_exists(identifier))

    def _load_expected(
        self, identifier: Identifier, definition: ViewVersion, schema: Schema, lost: CommitStateUnknown
    ) -> ViewState:
        """The view, if it is as wanted, whoever made it so; it is not sent again, for the lost request may arrive."""
        state = self.load_view(identifier)
        if state.metadata.with_definition(definition, schema) is state.metadata:
            return state
        raise CommitStateUnknown(f"whether view {dotted(identifier)} was replaced is not known: {lost}") from lost


def _view(answer: Answer) -> ViewState:
    loaded = view_result_from_json(answer.json())
    return ViewState(metadata=loaded.metadata, metadata_location=loaded.metadata_location)
