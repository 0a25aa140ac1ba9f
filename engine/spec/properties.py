"""Properties of tables and views: all names that the engine reads, their defaults and types.

``COMMIT_NUM_RETRIES.of(metadata.properties)`` is an int, the default where the property is not set, and Invalid, naming
the property, where its text is not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from icebench.engine.errors import Invalid
from icebench.engine.spec.texts import check_text, is_text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Property(Generic[T]):
    """A property's name, its default, and how its text is read.

    Args:
        name: Its name.
        default: Its value where it is not set.
        parse: Reads its text; raises ValueError for what it refuses.
        owner: What has it: ``"table"`` or ``"view"``.
    """

    name: str
    default: T
    parse: Callable[[str], T]
    owner: str = "table"

    def of(self, properties: Mapping[str, str]) -> T:
        """The value in `properties`, or the default; raises Invalid for a text that is no such value."""
        text = properties.get(self.name)
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise Invalid(f"{self.owner} property {self.name}={text!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class ColumnProperty(Generic[T]):
    """A property of single columns, each named `prefix` and the column's name."""

    prefix: str
    default: T
    parse: Callable[[str], T]

    def of(self, properties: Mapping[str, str], column: str) -> T:
        """The value for a column, or the default; raises Invalid for a text that is no such value."""
        return Property(self.prefix + column, self.default, self.parse).of(properties)

    def by_column(self, properties: Mapping[str, str]) -> dict[str, T]:
        """The values of all columns for which the property is set; raises Invalid as `of`."""
        columns = [name.removeprefix(self.prefix) for name in properties if name.startswith(self.prefix)]
        return {column: self.of(properties, column) for column in columns}


def as_texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Properties whose values are texts, as metadata has them: a number is written out, and so are ``true`` and
    ``false``.

    Raises:
        Invalid: A name is no text, or a value is something else, which the error does not show: it may be a secret.
    """
    found = {}
    for name, value in properties.items():
        check_text("the name of a property", name)
        text = str(value).lower() if isinstance(value, bool) else value
        text = str(text) if isinstance(text, int | float) else text
        if not is_text(text):
            raise Invalid(f"property {name} is not a text")
        found[name] = text
    return found


def _whole(text: str) -> int:
    """As Java reads it: ASCII digits with at most a sign, in 64 bits."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("is not a whole number")
    value = int(text)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("is beyond 64 bits")
    return value


def _not_negative(text: str) -> int:
    value = _whole(text)
    if value < 0:
        raise ValueError("is negative")
    return value


def _positive(text: str) -> int:
    value = _whole(text)
    if value <= 0:
        raise ValueError("is not positive")
    return value


def _whole_or_null(text: str) -> int | None:
    return None if text == "null" else _whole(text)


def _probability(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("is not a number") from None
    if not 0 < value < 1:
        raise ValueError("is not between 0 and 1")
    return value


def _two_or_more(text: str) -> int:
    value = _whole(text)
    if value < 2:
        raise ValueError("is less than 2")
    return value


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError("are no names separated by commas")
    return names


def _file_index(text: str) -> tuple[int, str, str, str]:
    found = text.split(" ", 3)
    if len(found) < 4:
        raise ValueError("is no snapshot, kind, digest and family of types")
    return _whole(found[0]), found[1], found[2], found[3]


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return text.lower() == "true"


def _one_of(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in allowed:
            raise ValueError(f"is none of {', '.join(allowed)}")
        return text.lower()

    return parse


_MODES = _one_of("copy-on-write", "merge-on-read")
_ISOLATION = _one_of("serializable", "snapshot")
_PLANNING = _one_of("auto", "local", "distributed")
_FORMATS = _one_of("parquet", "avro", "orc")
_PARQUET_CODECS = _one_of("zstd", "gzip", "snappy", "lz4", "brotli", "uncompressed", "none")
_MB = 1 << 20
_SECOND = 1_000
_MINUTE = 60 * _SECOND
_DAY = 24 * 60 * _MINUTE

# Commits.
COMMIT_NUM_RETRIES = Property("commit.retry.num-retries", 4, _not_negative)
COMMIT_MIN_WAIT_MS = Property("commit.retry.min-wait-ms", 100, _not_negative)
COMMIT_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", _MINUTE, _not_negative)
COMMIT_TOTAL_TIMEOUT_MS = Property("commit.retry.total-timeout-ms", 30 * _MINUTE, _not_negative)
STATUS_CHECK_NUM_RETRIES = Property("commit.status-check.num-retries", 3, _not_negative)
STATUS_CHECK_MIN_WAIT_MS = Property("commit.status-check.min-wait-ms", _SECOND, _not_negative)
STATUS_CHECK_MAX_WAIT_MS = Property("commit.status-check.max-wait-ms", _MINUTE, _not_negative)
STATUS_CHECK_TOTAL_TIMEOUT_MS = Property("commit.status-check.total-timeout-ms", 30 * _MINUTE, _not_negative)
HOST_COMMIT_LOCK = Property("icebench.commit.host-lock.enabled", False, _boolean)
"""Whether writers of one host commit one at a time; see `icebench.engine.storage.host_commit_lock`."""
MANIFEST_TARGET_SIZE_BYTES = Property("commit.manifest.target-size-bytes", 8 * _MB, _positive)
MANIFEST_MIN_COUNT_TO_MERGE = Property("commit.manifest.min-count-to-merge", 100, _not_negative)
MANIFEST_MERGE_ENABLED = Property("commit.manifest-merge.enabled", True, _boolean)

# Metadata files.
METADATA_COMPRESSION = Property("write.metadata.compression-codec", "none", _one_of("none", "gzip"))
METADATA_PREVIOUS_VERSIONS_MAX = Property("write.metadata.previous-versions-max", 100, _whole)
METADATA_DELETE_AFTER_COMMIT = Property("write.metadata.delete-after-commit.enabled", False, _boolean)
METADATA_PATH: Property[str | None] = Property("write.metadata.path", None, str)
MANIFEST_COMPRESSION = Property(
    "write.manifest.compression-codec", "gzip", _one_of("gzip", "zstd", "snappy", "uncompressed")
)
PARTITION_SUMMARY_LIMIT = Property("write.summary.partition-limit", 0, _not_negative)

# Data and delete files.
DATA_PATH: Property[str | None] = Property("write.data.path", None, str)
OBJECT_STORAGE_PATH: Property[str | None] = Property("write.object-storage.path", None, str)
FOLDER_STORAGE_PATH: Property[str | None] = Property("write.folder-storage.path", None, str)
"""Older names of ``write.data.path``: files below them are found, and none is written there."""
LOCATION_PROVIDER: Property[str | None] = Property("write.location-provider.impl", None, str)
"""A class of Java that chooses where files go."""
TARGET_FILE_SIZE_BYTES = Property("write.target-file-size-bytes", 512 * _MB, _positive)
DELETE_TARGET_FILE_SIZE_BYTES = Property("write.delete.target-file-size-bytes", 64 * _MB, _positive)
DEFAULT_FILE_FORMAT = Property("write.format.default", "parquet", _FORMATS)
DELETE_FILE_FORMAT: Property[str | None] = Property("write.delete.format.default", None, _FORMATS)
"""None: that of data files."""
OBJECT_STORAGE_ENABLED = Property("write.object-storage.enabled", False, _boolean)
OBJECT_STORAGE_PARTITIONED_PATHS = Property("write.object-storage.partitioned-paths", True, _boolean)
DELETE_GRANULARITY = Property("write.delete.granularity", "file", _one_of("file", "partition"))
"""Whether a position-delete file refers to one data file, or to any of a partition."""
READ_BACK = Property("icebench.write.read-back", "nested", _one_of("none", "nested", "all"))
"""Which new data files are read back and compared before a commit; see
`icebench.engine.write.read_back.compared_columns`."""
DISTRIBUTION_MODE = Property("write.distribution-mode", "none", _one_of("none", "hash", "range"))
ACCEPT_ANY_SCHEMA = Property("write.spark.accept-any-schema", False, _boolean)

ENCRYPTION_KEY_ID = Property("encryption.key-id", "", str)
"""The table's master key, in a key management service: its files are to be encrypted."""

# Of the formats. Each has a form for delete files, which begins with DELETE_PREFIX instead of WRITE_PREFIX.
WRITE_PREFIX = "write."
DELETE_PREFIX = "write.delete."
PARQUET_COMPRESSION = Property("write.parquet.compression-codec", "zstd", _PARQUET_CODECS)
PARQUET_COMPRESSION_LEVEL = Property("write.parquet.compression-level", None, _whole_or_null)
PARQUET_ROW_GROUP_SIZE_BYTES = Property("write.parquet.row-group-size-bytes", 128 * _MB, _positive)
PARQUET_PAGE_SIZE_BYTES = Property("write.parquet.page-size-bytes", _MB, _positive)
PARQUET_PAGE_ROW_LIMIT = Property("write.parquet.page-row-limit", 20_000, _positive)
PARQUET_PAGE_VERSION = Property("write.parquet.page-version", "v1", _one_of("v1", "v2"))
PARQUET_DICT_SIZE_BYTES = Property("write.parquet.dict-size-bytes", 2 * _MB, _positive)
PARQUET_DICT_ENABLED = Property("parquet.enable.dictionary", True, _boolean)
PARQUET_DICT_ENABLED_COLUMN = ColumnProperty("write.parquet.dict-encoding-enabled.column.", True, _boolean)
PARQUET_BLOOM_MAX_BYTES = Property("write.parquet.bloom-filter-max-bytes", _MB, _positive)
PARQUET_BLOOM_ENABLED = ColumnProperty("write.parquet.bloom-filter-enabled.column.", False, _boolean)
PARQUET_BLOOM_FPP = ColumnProperty("write.parquet.bloom-filter-fpp.column.", 0.01, _probability)
PARQUET_BLOOM_NDV: ColumnProperty[int | None] = ColumnProperty(
    "write.parquet.bloom-filter-ndv.column.", None, _positive
)
PARQUET_STATS_ENABLED = ColumnProperty("write.parquet.stats-enabled.column.", True, _boolean)

ORC_COMPRESSION = Property("write.orc.compression-codec", "zlib", _one_of("zlib", "zstd", "snappy", "lz4", "none"))
ORC_COMPRESSION_STRATEGY = Property("write.orc.compression-strategy", "speed", _one_of("speed", "compression"))
ORC_STRIPE_SIZE_BYTES = Property("write.orc.stripe-size-bytes", 64 * _MB, _positive)
ORC_BLOOM_COLUMNS = Property("write.orc.bloom.filter.columns", "", str)
AVRO_COMPRESSION = Property("write.avro.compression-codec", "gzip", _one_of("gzip", "zstd", "snappy", "uncompressed"))
AVRO_COMPRESSION_LEVEL = Property("write.avro.compression-level", None, _whole_or_null)

# Column metrics in manifests; `engine.formats.metrics_modes` parses the modes.
METRICS_DEFAULT: Property[str | None] = Property("write.metadata.metrics.default", None, str)
METRICS_COLUMN: ColumnProperty[str | None] = ColumnProperty("write.metadata.metrics.column.", None, str)
METRICS_MAX_INFERRED = Property("write.metadata.metrics.max-inferred-column-defaults", 100, _not_negative)

COLUMN_PROPERTIES: tuple[ColumnProperty[Any], ...] = (
    METRICS_COLUMN,
    PARQUET_BLOOM_ENABLED,
    PARQUET_BLOOM_FPP,
    PARQUET_BLOOM_NDV,
    PARQUET_DICT_ENABLED_COLUMN,
    PARQUET_STATS_ENABLED,
)

# Row-level changes.
DELETE_MODE = Property("write.delete.mode", "copy-on-write", _MODES)
UPDATE_MODE = Property("write.update.mode", "copy-on-write", _MODES)
MERGE_MODE = Property("write.merge.mode", "copy-on-write", _MODES)
DELETE_ISOLATION = Property("write.delete.isolation-level", "serializable", _ISOLATION)
UPDATE_ISOLATION = Property("write.update.isolation-level", "serializable", _ISOLATION)
MERGE_ISOLATION = Property("write.merge.isolation-level", "serializable", _ISOLATION)

# Clustering; see `engine.maintenance.clustering`.
CLUSTERING_STRATEGY: Property[str | None] = Property(
    "icebench.clustering.strategy", None, _one_of("sort", "zorder", "hilbert")
)
CLUSTERING_KEYS: Property[tuple[str, ...]] = Property("icebench.clustering.keys", (), _names)
"""Full names of columns; none for a sort by the table's own sort order."""
CLUSTERING_FAN_IN = Property("icebench.clustering.fan-in", 4, _two_or_more)

# Reading.
SPLIT_SIZE = Property("read.split.target-size", 128 * _MB, _positive)
SPLIT_LOOKBACK = Property("read.split.planning-lookback", 10, _positive)
SPLIT_OPEN_FILE_COST = Property("read.split.open-file-cost", 4 * _MB, _not_negative)
DATA_PLANNING_MODE = Property("read.data-planning-mode", "auto", _PLANNING)
DELETE_PLANNING_MODE = Property("read.delete-planning-mode", "auto", _PLANNING)
NAME_MAPPING: Property[str | None] = Property("schema.name-mapping.default", None, str)

# Retention.
MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", 5 * _DAY, _not_negative)
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", 1, _positive)
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", 2**63 - 1, _positive)
GC_ENABLED = Property("gc.enabled", True, _boolean)
STREAM_MAX_AGE_MS = Property("icebench.streams.max-age-ms", 90 * _DAY, _not_negative)
"""Expire what is kept of a stream's last batch when the stream has committed none for so long."""

INDEX_OF_COLUMN: ColumnProperty[tuple[int, str, str, str] | None] = ColumnProperty(
    "icebench.file-index.", None, _file_index
)
"""By the id of a column: the snapshot whose statistics file has its newest index, the kind, a digest of the name
mapping, and the family of types that tell how values were hashed; see `icebench.engine.file_indexes.lookup`."""

# Of views.
VIEW_HISTORY_SIZE = Property("version.history.num-entries", 10, _positive, owner="view")
"""How many versions of a view are kept."""

FORMAT_VERSION = Property("format-version", 2, _whole)

RESERVED = frozenset(
    {
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    }
)
"""Names that describe a table and are never stored as its properties."""
