"""Storage options that a REST catalog gives with a table, and the stores made of them."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from engine.codec.rest_json import LoadedTable
from engine.errors import Unsupported
from engine.storage.resolve import Stores
from engine.storage.store import Store

_REMOTE_SIGNING = "s3.remote-signing-enabled"
_PLANNING_MODE = "scan-planning-mode"


class TableStores:
    """The store of a location, with the options of the table that lies there.

    The server may give credentials for a short time; they are taken again whenever the table is loaded. A store that
    was handed out keeps those it was made with.

    Args:
        properties: The catalog's own options.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._default = Stores(properties)
        self._lock = Lock()
        self._by_table: dict[str, tuple[dict[str, str], Stores]] = {}

    def __call__(self, location: str) -> Store:
        """The store; errors as `engine.storage.resolve.store_for`."""
        with self._lock:
            below = [root for root in self._by_table if location == root or location.startswith(f"{root}/")]
            stores = self._by_table[max(below, key=len)][1] if below else self._default
        return stores(location)

    def learn(self, loaded: LoadedTable, *, subject: str) -> None:
        """Take on what the server said of a table's storage.

        Raises:
            Unsupported: The table can only be read with requests that the server signs, or that it plans itself.
        """
        root = loaded.metadata.location
        options = _options(loaded, root)
        if options.get(_REMOTE_SIGNING, "false").lower() == "true" and "s3.access-key-id" not in options:
            raise Unsupported(f"{subject}: the REST catalog gives no credentials but signs each request")
        if options.get(_PLANNING_MODE, "client").lower() == "server":
            raise Unsupported(f"{subject}: the REST catalog demands to plan scans itself")
        with self._lock:
            if not options:
                self._by_table.pop(root, None)
            elif root not in self._by_table or self._by_table[root][0] != options:
                self._by_table[root] = (options, Stores({**self._properties, **options}))


def _options(loaded: LoadedTable, root: str) -> dict[str, str]:
    fitting = [credential for credential in loaded.credentials if root.startswith(credential.prefix)]
    # The specification: the longest prefix wins, and a credential stands above the configuration.
    best = max(fitting, key=lambda credential: len(credential.prefix), default=None)
    return {**loaded.config, **(best.config if best is not None else {})}
