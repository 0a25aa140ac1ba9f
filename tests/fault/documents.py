"""View metadata and the answers of a REST catalog: JSON that is read without a table's files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.codec.metadata_json.table import encode_metadata
from icebench.engine.codec.metadata_json.views import decode_view
from icebench.engine.commit.committer import Committed
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.metadata import TableMetadata
from icebench.engine.spec.updates import SetProperties
from tests.fault.specimens import Specimen
from tests.services.scripted_http import Reply, Seen, scripted_server

QUICK = Waiting(sleep=lambda _: None, monotonic=lambda: 0.0, random=lambda: 0.0)
LOCATION = "s3://bucket/views/v/metadata/00000.metadata.json"

VIEW: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/views/v",
    "current-version-id": 2,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": number,
            "timestamp-ms": 1573518431292 + number,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [{"type": "sql", "sql": f"SELECT COUNT({number}) FROM events", "dialect": "spark"}],
        }
        for number in (1, 2)
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [{"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"}],
        }
    ],
    "version-log": [{"timestamp-ms": 1573518431292 + number, "version-id": number} for number in (1, 2)],
}

_TABLE = "/v1/namespaces/db/tables/t"
_PATHS = {
    "config": "GET /v1/config",
    "namespaces": "GET /v1/namespaces",
    "tables": "GET /v1/namespaces/db/tables",
    "namespace": "GET /v1/namespaces/db",
    "table": f"GET {_TABLE}",
    "commit": f"POST {_TABLE}",
}


class Answers:
    """A REST server's answers about one table, and what a client makes of them."""

    def __init__(self, metadata: TableMetadata) -> None:
        table = {
            "metadata-location": "memory://wh/db/t/metadata/1.json",
            "metadata": json.loads(encode_metadata(metadata)),
            "config": {"token": "t", "a": "b"},
        }
        bodies: dict[str, Any] = {
            "config": {
                "defaults": {"clients": "4"},
                "overrides": {"prefix": ""},
                "endpoints": ["GET /v1/{prefix}/namespaces"],
            },
            "namespaces": {"namespaces": [["db"], ["other"]]},
            "tables": {"identifiers": [{"namespace": ["db"], "name": "t"}]},
            "namespace": {"namespace": ["db"], "properties": {"owner": "x"}},
            "table": table,
            "commit": {name: table[name] for name in ("metadata-location", "metadata")},
        }
        # Without endpoints all are offered.
        del bodies["config"]["endpoints"]
        del bodies["config"]["overrides"]["prefix"]
        self._bodies = {name: json.dumps(body).encode() for name, body in bodies.items()}
        self.truth = {name: self.read(name, body) for name, body in self._bodies.items()}

    @property
    def specimens(self) -> list[Specimen]:
        return [
            Specimen(kind="rest answer", table=name, location=_PATHS[name], data=body)
            for name, body in self._bodies.items()
        ]

    def read(self, name: str, damaged: bytes) -> object:
        """What a client makes of the answers when that one is damaged."""
        bodies = {_PATHS[each]: body for each, body in self._bodies.items()} | {_PATHS[name]: damaged}

        def answer(seen: Seen) -> Reply:
            body = bodies.get(f"{seen.method} {seen.path}")
            return Reply(status=404, body={}) if body is None else Reply(body=body)

        with scripted_server(answer) as server:
            catalog = RestCatalog(open_session(server.address, waiting=QUICK))
            try:
                return _ASK[name](catalog)
            finally:
                catalog.close()


def _commit(catalog: RestCatalog) -> object:
    outcome = catalog.commit(("db", "t"), catalog.load_state(("db", "t")), [], [SetProperties({"a": "1"})])
    # Whatever cannot be read must be unknown: the change was made, and its files must stay.
    return outcome.state if isinstance(outcome, Committed) else type(outcome).__name__


_ASK: dict[str, Callable[[RestCatalog], object]] = {
    "config": lambda catalog: catalog.list_namespaces(),
    "namespaces": lambda catalog: catalog.list_namespaces(),
    "tables": lambda catalog: catalog.list_tables(("db",)),
    "namespace": lambda catalog: catalog.namespace_properties(("db",)),
    "table": lambda catalog: catalog.load_state(("db", "t")),
    "commit": _commit,
}


def view_specimen() -> Specimen:
    return Specimen(kind="view metadata", table="view", location=LOCATION, data=json.dumps(VIEW).encode())


def read_view(data: bytes) -> object:
    return decode_view(data, location=LOCATION)
