"""Views in a SQL catalog: rows of ``iceberg_tables`` whose type is ``VIEW``, as in Iceberg Java's JdbcCatalog."""

from __future__ import annotations

from collections.abc import Mapping

from icebench.engine.catalog.catalog import Namespace
from icebench.engine.catalog.identifiers import dotted
from icebench.engine.catalog.lost_changes import AnswerLost, CatalogBusy, settle
from icebench.engine.catalog.pointers import VIEW_TYPE
from icebench.engine.catalog.sql import SqlCatalog
from icebench.engine.catalog.versions import next_version
from icebench.engine.catalog.views import ViewState
from icebench.engine.codec.metadata_json.views import decode_view, encode_view
from icebench.engine.commit.committer import Identifier
from icebench.engine.commit.retry import Waiting
from icebench.engine.errors import (
    CommitConflict,
    EngineError,
    NotFound,
    Unsupported,
)
from icebench.engine.spec.properties import METADATA_COMPRESSION, METADATA_PATH
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.views import ViewMetadata, ViewVersion, new_view_metadata


class SqlViewCatalog(SqlCatalog):
    """Tables and views in a SQL database. Dropping either keeps its files."""

    def create_view(
        self,
        identifier: Identifier,
        definition: ViewVersion,
        schema: Schema,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> ViewState:
        self._check_types()
        metadata = new_view_metadata(
            definition,
            schema,
            location=location or self.default_location(identifier),
            view_uuid=str(self._new_id()),
            properties=properties,
        )
        state = self._write(metadata, None)
        try:
            self._insert_row(identifier, state.metadata_location, metadata.location, VIEW_TYPE)
        except AnswerLost as lost:
            self._settle(identifier, state, lost)
        except EngineError:
            self._files.delete(state.metadata_location)
            raise
        return state

    def load_view(self, identifier: Identifier) -> ViewState:
        location = self._view_location(identifier)
        if location is None:
            raise self._no_view(identifier)
        return ViewState(metadata=self._metadata(location), metadata_location=location)

    def view_exists(self, identifier: Identifier) -> bool:
        return self._view_location(identifier) is not None

    def replace_view(self, identifier: Identifier, definition: ViewVersion, schema: Schema) -> ViewState:
        state = self.load_view(identifier)
        for attempt in Waiting().for_commits(state.metadata.properties).attempts():
            if attempt > 1:
                state = self.load_view(identifier)
            metadata = state.metadata.with_definition(definition, schema)
            if metadata is state.metadata:
                return state
            new = self._write(metadata, state.metadata_location)
            if self._swap_view(identifier, state, new):
                return new
            self._files.delete(new.metadata_location)
        raise CommitConflict(f"view {dotted(identifier)} was changed by others at every attempt")

    def list_views(self, namespace: Namespace) -> list[Identifier]:
        self._check_types()
        return self._list(namespace, VIEW_TYPE)

    def rename_view(self, old: Identifier, new: Identifier) -> None:
        self._check_types()
        if not self._rename(old, new, lambda location: self._metadata(location).view_uuid, VIEW_TYPE):
            raise self._no_view(old)

    def drop_view(self, identifier: Identifier) -> None:
        self._check_types()
        if not self._drop(identifier, VIEW_TYPE):
            raise self._no_view(identifier)

    def _check_types(self) -> None:
        if not self._has_types:
            raise Unsupported(f"views in {self._database}: its tables are of schema version V0, which has none")

    def _view_location(self, identifier: Identifier) -> str | None:
        self._check_types()
        return self._location_of(identifier, VIEW_TYPE)

    def _metadata(self, location: str) -> ViewMetadata:
        return decode_view(self.store_at(location).read(location), location=location)

    def _write(self, metadata: ViewMetadata, current: str | None) -> ViewState:
        directory = METADATA_PATH.of(metadata.properties) or f"{metadata.location}/metadata"
        compress = METADATA_COMPRESSION.of(metadata.properties) == "gzip"
        suffix = ".gz.metadata.json" if compress else ".metadata.json"
        location = f"{directory.rstrip('/')}/{next_version(current):05d}-{self._new_id()}{suffix}"
        try:
            self.store_at(location).write(location, encode_view(metadata, compress=compress))
        except EngineError:
            self._files.delete(location)
            raise
        return ViewState(metadata=metadata, metadata_location=location)

    def _swap_view(self, identifier: Identifier, base: ViewState, new: ViewState) -> bool:
        try:
            return self._swap_row(identifier, base.metadata_location, new.metadata_location, VIEW_TYPE)
        except CatalogBusy:
            return False
        except AnswerLost as lost:
            self._settle(identifier, new, lost)
            return True
        except EngineError:
            self._files.delete(new.metadata_location)
            raise

    def _settle(self, identifier: Identifier, wanted: ViewState, lost: AnswerLost) -> None:
        """Return where the view is at the wanted file; raise CommitStateUnknown where that is not so, or not known."""
        what = f"view {dotted(identifier)} was changed"
        settle(what, lambda: self._view_location(identifier) == wanted.metadata_location, lost)

    def _no_view(self, identifier: Identifier) -> NotFound:
        return NotFound(f"no view {dotted(identifier)} in catalog {self.name!r}")
