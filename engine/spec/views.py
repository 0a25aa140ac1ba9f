"""Views (the Iceberg view spec): named queries with versions, each in one or more SQL dialects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from icebench.engine.errors import Invalid, NotFound
from icebench.engine.spec.properties import VIEW_HISTORY_SIZE
from icebench.engine.spec.schema import Schema

VIEW_FORMAT_VERSION = 1
_DROP_DIALECT_PROPERTY = "replace.drop-dialect.allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlRepresentation:
    """A query in one dialect, e.g. ``"spark"``."""

    sql: str
    dialect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewVersion:
    """One definition of a view; dialects are unique, without regard to case."""

    version_id: int
    schema_id: int
    timestamp_ms: int
    summary: Mapping[str, str] = field(default_factory=dict)
    representations: tuple[SqlRepresentation, ...]
    default_catalog: str | None = None
    default_namespace: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        dialects = [r.dialect.lower() for r in self.representations]
        if not dialects:
            raise Invalid("a view version needs at least one SQL representation")
        if len(set(dialects)) < len(dialects):
            raise Invalid(f"a view version has one query for a dialect, not several: {', '.join(sorted(dialects))}")

    def sql_for(self, dialect: str) -> str:
        """The query in that dialect; raises NotFound."""
        for representation in self.representations:
            if representation.dialect.lower() == dialect.lower():
                return representation.sql
        known = ", ".join(r.dialect for r in self.representations)
        raise NotFound(f"the view has no query in dialect {dialect!r}; there are: {known}")

    def same_definition(self, other: ViewVersion) -> bool:
        """Whether two versions differ in id and time only."""
        return replace(other, version_id=self.version_id, timestamp_ms=self.timestamp_ms) == self


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewHistoryEntry:
    """When a version became current."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True, kw_only=True)
class ViewMetadata:
    """One version of a view's metadata, complete and immutable."""

    view_uuid: str
    location: str
    format_version: int = VIEW_FORMAT_VERSION
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[ViewHistoryEntry, ...]
    schemas: tuple[Schema, ...]
    properties: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def version_by_id(self) -> dict[int, ViewVersion]:
        """All kept versions by id."""
        return {v.version_id: v for v in self.versions}

    @property
    def current_version(self) -> ViewVersion:
        """The definition that readers use."""
        return self.version_by_id[self.current_version_id]

    @property
    def schema(self) -> Schema:
        """The schema of the current version."""
        return next(s for s in self.schemas if s.schema_id == self.current_version.schema_id)

    def with_definition(self, definition: ViewVersion, schema: Schema) -> ViewMetadata:
        """The metadata after `definition` became current; its ids are assigned here.

        An equal schema or an equal version that is kept already is used again. History beyond
        ``version.history.num-entries`` is dropped, the current version never.

        Raises:
            Invalid: A dialect of the current version would be lost and ``replace.drop-dialect.allowed`` is not true, or
                ``version.history.num-entries`` is no positive number.
        """
        self._refuse_lost_dialects(definition)
        schemas, schema_id = self._with_schema(schema)
        wanted = replace(definition, schema_id=schema_id)
        known = next((v for v in self.versions if v.same_definition(wanted)), None)
        if known is not None and known.version_id == self.current_version_id:
            return self
        versions = self.versions
        if known is None:
            known = replace(wanted, version_id=max(self.version_by_id, default=0) + 1)
            versions = (*versions, known)
        entry = ViewHistoryEntry(timestamp_ms=definition.timestamp_ms, version_id=known.version_id)
        log = (*self.version_log, entry)
        kept = self._kept_versions(versions, known.version_id)
        kept_ids = {v.version_id for v in kept}
        # The log ends at the first expired version, looking back: what came before it is not explained any more.
        start = max((i + 1 for i, e in enumerate(log) if e.version_id not in kept_ids), default=0)
        return replace(
            self, current_version_id=known.version_id, versions=kept, version_log=log[start:], schemas=schemas
        )

    def with_properties(self, changed: Mapping[str, str], removed: frozenset[str] = frozenset()) -> ViewMetadata:
        """The metadata with properties set and removed."""
        kept = {name: value for name, value in self.properties.items() if name not in removed}
        return replace(self, properties=kept | dict(changed))

    def _refuse_lost_dialects(self, definition: ViewVersion) -> None:
        if self.properties.get(_DROP_DIALECT_PROPERTY, "false").lower() == "true":
            return
        kept = {r.dialect.lower() for r in definition.representations}
        lost = [r.dialect for r in self.current_version.representations if r.dialect.lower() not in kept]
        if lost:
            raise Invalid(
                f"the new definition has no query in dialect {', '.join(lost)}; "
                f"give one, or set {_DROP_DIALECT_PROPERTY}=true"
            )

    def _with_schema(self, schema: Schema) -> tuple[tuple[Schema, ...], int]:
        for known in self.schemas:
            if known.fields == schema.fields and known.identifier_field_ids == schema.identifier_field_ids:
                return self.schemas, known.schema_id
        new_id = max((s.schema_id for s in self.schemas), default=-1) + 1
        return (*self.schemas, replace(schema, schema_id=new_id)), new_id

    def _kept_versions(self, versions: tuple[ViewVersion, ...], current_id: int) -> tuple[ViewVersion, ...]:
        limit = VIEW_HISTORY_SIZE.of(self.properties)
        newest = sorted((v.version_id for v in versions if v.version_id != current_id), reverse=True)
        kept = {current_id, *newest[: limit - 1]}
        return tuple(v for v in versions if v.version_id in kept)


def new_view_metadata(
    definition: ViewVersion,
    schema: Schema,
    *,
    location: str,
    view_uuid: str,
    properties: Mapping[str, str] | None = None,
) -> ViewMetadata:
    """The metadata of a view that is created with `definition`, as version 1 with schema 0.

    Raises:
        Invalid: ``version.history.num-entries`` is no positive number.
    """
    VIEW_HISTORY_SIZE.of(properties or {})
    first = replace(definition, version_id=1, schema_id=0)
    return ViewMetadata(
        view_uuid=view_uuid,
        location=location,
        current_version_id=1,
        versions=(first,),
        version_log=(ViewHistoryEntry(timestamp_ms=first.timestamp_ms, version_id=1),),
        schemas=(replace(schema, schema_id=0),),
        properties=dict(properties or {}),
    )
