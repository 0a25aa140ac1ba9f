"""Storage options and credentials that a REST catalog returns with a table, and the stores that use them.

Credentials expire. A table's store renews them before that: `VendedStore` asks the catalog, loading the table supplies
newer ones, too, and all handles of the table share the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

from icebench.engine.catalog.rest_signing import ENABLED, PYICEBERG_SIGNER, SIGNING_PROPERTIES
from icebench.engine.codec.metadata_json.rest import LoadedTable, StorageCredential
from icebench.engine.errors import EngineError, Unsupported
from icebench.engine.storage.forwarding import ForwardingInputFile, ForwardingStore
from icebench.engine.storage.object_stores import S3_SCHEMES, flag, is_storage_property, signed_s3_store
from icebench.engine.storage.resolve import Stores, scheme_of
from icebench.engine.storage.signed_s3 import S3Request
from icebench.engine.storage.spooled_output import SpooledOutputFile, UploadingStore
from icebench.engine.storage.store import InputFile, OutputFile, Store

_OWN = ("s3.access-key-id", "client.access-key-id", "s3.role-arn", "client.role-arn", "client.assume-role.arn")
"""Options by which the client signs requests itself."""
_SIGNER = "S3V4RestSigner"
_PLANNING_MODE = "scan-planning-mode"
_ENDS_AT = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.")
_LENT = ("s3.session-token", "gcs.oauth2.token", "adls.sas-token.")
"""Options (or prefixes of their names) with the expiry of credentials, and options that expire."""
_EARLY_MS = 300_000
_AGAIN_MS = 30_000


@dataclass(frozen=True, slots=True)
class Vended:
    """Storage options and credentials for the files of one table."""

    config: Mapping[str, str] = field(repr=False)
    credentials: tuple[StorageCredential, ...] = ()

    @classmethod
    def of(cls, loaded: LoadedTable) -> Vended:
        """Those returned with a table."""
        return cls(loaded.config, loaded.credentials)

    def options(self, location: str) -> dict[str, str]:
        """The options of a location: the longest prefix wins, and credentials override the configuration."""
        fitting = [credential for credential in self.credentials if location.startswith(credential.prefix)]
        best = max(fitting, key=lambda credential: len(credential.prefix), default=None)
        return {**self.config, **(best.config if best is not None else {})}

    @property
    def ends_at_ms(self) -> int | None:
        """The earliest expiry of the credentials; None if unknown."""
        named = [item for each in self._each() for item in each.items() if _is_any(item[0], _ENDS_AT)]
        expiries = [int(value) for _, value in named if value.isdecimal()]
        return min(expiries, default=None)

    @property
    def lends(self) -> bool:
        """Whether there are credentials that expire, even at an unknown time."""
        return any(_is_any(name, _LENT) for each in self._each() for name in each)

    def _each(self) -> list[Mapping[str, str]]:
        return [{**self.config, **credential.config} for credential in self.credentials] or [self.config]


def _for_storage(options: Mapping[str, str]) -> dict[str, str]:
    """The options that are read here, without those of the catalog: passwords, tokens and headers."""
    own = (*SIGNING_PROPERTIES, *_ENDS_AT, _PLANNING_MODE)
    return {name: value for name, value in options.items() if is_storage_property(name) or _is_any(name, own)}


def _is_any(name: str, known: tuple[str, ...]) -> bool:
    return any(name == each or (each.endswith(".") and name.startswith(each)) for each in known)


Sign = Callable[[S3Request], S3Request]
Signer = Callable[[Mapping[str, str]], Sign]
"""By the options of a location, what signs requests for it."""


def _signs_remotely(options: Mapping[str, str], location: str) -> bool:
    """Whether the server signs the requests for a location; raises Invalid, Unsupported."""
    signer = options.get(PYICEBERG_SIGNER)
    if signer not in (None, _SIGNER):
        raise Unsupported(f"{PYICEBERG_SIGNER}={signer!r}: there is {_SIGNER}")
    is_asked = signer is not None or flag(ENABLED, options.get(ENABLED, "false"))
    return is_asked and not any(name in options for name in _OWN) and scheme_of(location) in S3_SCHEMES


@dataclass(frozen=True, slots=True)
class Service:
    """What the catalog does for the storage of a table that was loaded, and the clock by which credentials end.

    `renew` asks for more credentials, and raises EngineError. In another process it is None, and `signer` is None
    unless requests are signed.
    """

    renew: Callable[[], Vended] | None = field(repr=False)
    signer: Signer | None = field(repr=False)
    now_ms: Callable[[], int]


class VendedStore(ForwardingStore):
    """The files of one table, each with valid credentials for its location, or read by requests that the server signs.

    They are renewed five minutes before they end, or after half of a shorter life. Files that are open go on with new
    ones. A copy in another process keeps the credentials that it was sent with.

    Args:
        root: The table's location.
        properties: The catalog's own options, below those that it gives with the table.
        vended: What it gave first.
        service: The catalog's.
    """

    def __init__(self, root: str, properties: Mapping[str, str], vended: Vended, service: Service) -> None:
        self._root = root
        self._properties = dict(properties)
        self._service = service
        self._lock = Lock()
        self._take(vended)

    def __reduce__(self) -> tuple[object, ...]:
        options = self.options()
        # The signer has the client's token, which goes only where it is needed.
        signer = self._service.signer if _signs_remotely(options, self._root) else None
        held = Service(None, signer and partial(_same, signer(options)), _never)
        # A server may also lend a token for itself.
        vended = replace(self._vended, config=_for_storage(self._vended.config))
        return VendedStore, (self._root, self._properties, vended, held)

    def learn(self, vended: Vended, service: Service) -> None:
        """Adopt newer options and credentials, and the way to renew them; clients with equal options are kept."""
        with self._lock:
            self._service = service
            self._take(vended)

    @property
    def is_fresh(self) -> bool:
        """Whether the credentials are valid for some time; False if their expiry is unknown."""
        with self._lock:
            return not self._vended.lends if self._renew_at_ms is None else self._service.now_ms() < self._renew_at_ms

    @property
    def creates_atomically(self) -> bool:
        return self.at(self._root).creates_atomically

    def open_input(self, location: str) -> InputFile:
        return super().open_input(location) if self._renew_at_ms is None else _Input(self, location)

    def open_output(self, location: str, *, overwrite: bool = False) -> OutputFile:
        output = super().open_output(location, overwrite=overwrite)
        if isinstance(output, SpooledOutputFile):
            output.store_now = lambda: self._uploading(location)
        return output

    def _at(self, location: str) -> tuple[Store, str]:
        return self.at(location), location

    def at(self, location: str) -> Store:
        """The store of a location with valid credentials; a new one after renewal."""
        # Under the lock: many threads at the end of the credentials ask for new ones once.
        with self._lock:
            now_ms, renew = self._service.now_ms, self._service.renew
            if renew is not None and self._renew_at_ms is not None and now_ms() >= self._renew_at_ms:
                self._take(self._renewed(renew))
            options = self._vended.options(location)
            own = {**self._properties, **options}
            signer = self._service.signer if _signs_remotely(own, location) else None
            key = signer is not None, frozenset(options.items())
            if key not in self._stores:
                self._stores[key] = Stores(own) if signer is None else _signed(own, signer)
            stores = self._stores[key]
        return stores(location)

    def options(self) -> dict[str, str]:
        """Those of the table's location, with credentials that are valid now."""
        self.at(self._root)
        with self._lock:
            return {**self._properties, **self._vended.options(self._root)}

    def _uploading(self, location: str) -> UploadingStore:
        store = self.at(location)
        assert isinstance(store, UploadingStore)
        return store

    def _renewed(self, renew: Callable[[], Vended]) -> Vended:
        try:
            return renew()
        except EngineError:
            if self._ends_at_ms is None or self._service.now_ms() >= self._ends_at_ms:
                raise
            # What there is still holds, and the catalog may answer again before it ends.
            return self._vended

    def _take(self, vended: Vended) -> None:
        now, ends = self._service.now_ms(), vended.ends_at_ms
        if getattr(self, "_vended", None) != vended:
            self._stores: dict[tuple[bool, frozenset[tuple[str, str]]], Callable[[str], Store]] = {}
        self._vended, self._ends_at_ms = vended, ends
        # Credentials that seem to have ended already are used all the same: clocks differ.
        early = None if ends is None else min(_EARLY_MS, (ends - now) // 2)
        self._renew_at_ms = None if ends is None or early is None else max(ends - early, now + _AGAIN_MS)


class _Input(ForwardingInputFile):
    """A file that is reopened at its position when its credentials are renewed."""

    def __init__(self, vended: VendedStore, location: str) -> None:
        self._vended = vended
        self._location = location
        self._store = vended.at(location)
        super().__init__(self._store.open_input(location))

    def read(self, nbytes: int = -1, /) -> bytes:
        store = self._vended.at(self._location)
        if store is not self._store and not self.closed:
            file = store.open_input(self._location)
            file.seek(self.tell())
            self.close()
            self._store, self._inner = store, file
        return super().read(nbytes)


def _signed(options: Mapping[str, str], signer: Signer) -> Callable[[str], Store]:
    store = signed_s3_store(options, signer(options))
    return lambda _: store


def _same(sign: Sign, _: Mapping[str, str]) -> Sign:
    return sign


def _never() -> int:
    return 0


class TableStores:
    """The store of a location, with the options of the table at that location.

    Args:
        properties: The catalog's own options.
        now_ms: The clock by which credentials end.
    """

    def __init__(self, properties: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        # Stores are sent to other processes with their options.
        self._properties = _for_storage(properties)
        self._now_ms = now_ms
        self._default = Stores(self._properties)
        self._lock = Lock()
        self._by_table: dict[str, VendedStore] = {}

    def __call__(self, location: str) -> Store:
        """The store; raises as `icebench.engine.storage.resolve.store_for`."""
        with self._lock:
            below = [root for root in self._by_table if location == root or location.startswith(f"{root}/")]
            vended = self._by_table[max(below, key=len)] if below else None
        return self._default(location) if vended is None else vended

    def options(self, root: str) -> dict[str, str]:
        """What opens the files of the table at `root`; raises Unsupported if the server signs requests for them."""
        with self._lock:
            vended = self._by_table.get(root)
        found = self._properties if vended is None else vended.options()
        if _signs_remotely(found, root):
            raise Unsupported(f"credentials for {root}: the REST server signs each request, and gives none")
        return dict(found)

    def is_fresh(self, root: str) -> bool:
        """Whether nothing has to be renewed for the table at `root`."""
        with self._lock:
            vended = self._by_table.get(root)
        return vended is None or vended.is_fresh

    def learn(self, loaded: LoadedTable, *, subject: str, renew: Callable[[], Vended], signer: Signer) -> None:
        """Adopt what the server returned about a table's storage; `renew` requests more, `signer` signs.

        Raises:
            Unsupported: The table can only be read with scans that the server plans.
        """
        root, vended = loaded.metadata.location, Vended.of(loaded)
        options = {**self._properties, **vended.options(root)}
        if options.get(_PLANNING_MODE, "client").lower() == "server":
            raise Unsupported(f"{subject}: the REST catalog demands to plan scans itself")
        service = Service(renew, signer, self._now_ms)
        with self._lock:
            known = self._by_table.get(root)
            if known is None and (vended.config or vended.credentials or _signs_remotely(options, root)):
                self._by_table[root] = VendedStore(root, self._properties, vended, service)
        if known is not None:
            known.learn(vended, service)
