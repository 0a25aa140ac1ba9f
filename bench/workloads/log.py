"""A log of web requests: text of high cardinality, times that are nearly in order, hosts by Zipf's law.

Arrival order is the order of time, but for the late: those are `late` of all requests, logged up to six hours before
they arrive. Each request has an id, a random UUID (RFC 9562, version 4) as text, a URL that few others have, and one of
millions of user agents; `log_offset` is the row's number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icebench.bench.workloads.arrays import chosen, fixed_texts, numbered
from icebench.bench.workloads.draws import Int64s, Words, below, draw, words
from icebench.bench.workloads.popularity import popular
from icebench.bench.workloads.rows import KeyRange, Rows

START = 1_735_689_600_000_000
"""2025-01-01, in microseconds since 1970."""

DAYS = 30
_SECOND = 1_000_000
_SPAN = DAYS * 86_400 * _SECOND
_LATEST_SECONDS = 6 * 3_600
_MILLION = 1_000_000
USERS = 100_000

STATUSES = {200: 880, 304: 50, 404: 30, 302: 20, 401: 8, 429: 4, 500: 5, 503: 3}
"""How many requests of a thousand."""

_BY_STATUS = np.repeat(np.array(list(STATUSES), np.int32), list(STATUSES.values()))
_METHODS = ("GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST")
_SECTIONS = ("/", "/search/", "/product/", "/cart/", "/account/", "/api/v1/items/", "/static/js/", "/static/img/")
_SYSTEMS = (
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "Linux; Android 14; K",
    "iPhone; CPU iPhone OS 17_5 like Mac OS X",
    "iPad; CPU OS 17_5 like Mac OS X",
)
_BROWSERS = ("Chrome", "Firefox", "Safari", "Edge", "Opera", "bot")
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)

_SCHEMA = pa.schema(
    [
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("logged_at", pa.timestamp("us"), nullable=False),
        pa.field("host", pa.string(), nullable=False),
        pa.field("method", pa.string(), nullable=False),
        pa.field("url", pa.string(), nullable=False),
        pa.field("status", pa.int32(), nullable=False),
        pa.field("bytes", pa.int64()),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("user_agent", pa.string(), nullable=False),
        pa.field("user_id", pa.int64(), nullable=False),
        pa.field("request_id", pa.string(), nullable=False),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Log(Rows):
    """A log of `rows` requests in thirty days to `hosts` hosts, whose shares fall with Zipf's exponent `skew`."""

    hosts: int = 1_000
    skew: float = 1.1
    late: float = 0.01

    @property
    def name(self) -> str:
        return "log"

    @property
    def schema(self) -> pa.Schema:
        return _SCHEMA

    @property
    def identifier_columns(self) -> tuple[str, ...]:
        return ("log_offset",)

    @property
    def filters(self) -> Mapping[str, str]:
        """An hour, one request by its id, a section of one host, and errors, all of which there are."""
        one = self.batch(self.rows // 2, self.rows // 2 + 1).to_pylist()[0]
        hour = one["logged_at"].replace(minute=0, second=0, microsecond=0)
        return {
            "one_hour": f"logged_at >= '{hour:%Y-%m-%dT%H:00:00}' and logged_at <= '{hour:%Y-%m-%dT%H:59:59.999999}'",
            "one_request": f"request_id = '{one['request_id']}'",
            "url_prefix": f"url like '{one['url'].rpartition('/')[0]}/%'",
            "errors": "status >= 500",
        }

    def delete_keys(self, share: float, spread: str) -> KeyRange:
        """Spread at random it is an erasure of users; else a range of the log."""
        if spread == "random":
            return KeyRange(column="user_id", start=1, stop=1 + max(1, round(share * USERS)))
        return self.consecutive_keys("log_offset", share, spread)

    def batch(self, start: int, stop: int) -> pa.RecordBatch:
        rows = np.arange(start, stop, dtype=np.int64)
        host = numbered(self._hosts(rows), "www", ".example")
        status = _BY_STATUS[draw(self.seed, "log.status", rows, len(_BY_STATUS))]
        sizes = words(self.seed, "log.bytes", rows)
        # From a byte to a megabyte, every power of two as often as the others; a page that is not modified has none.
        size = (np.int64(1) << below(sizes, 20).astype(np.int64)) + below(sizes, 100, shift=0)
        columns = [
            pa.array(rows),
            pa.array(self._times(rows)).cast(_SCHEMA.field("logged_at").type),
            host,
            chosen(_METHODS, draw(self.seed, "log.method", rows, len(_METHODS))),
            self._urls(rows, host),
            pa.array(status),
            pa.array(size, mask=status == 304),
            pa.array(draw(self.seed, "log.seconds", rows, 30_000) ** 2 / 1e8),
            self._agents(rows),
            pa.array(1 + draw(self.seed, "log.user", rows, USERS).astype(np.int64)),
            _uuids(words(self.seed, "log.id", rows), words(self.seed, "log.id.low", rows)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)

    def _hosts(self, rows: Int64s) -> Int64s:
        return popular(words(self.seed, "log.host", rows), self.seed, "log.host.rank", self.hosts, self.skew)

    def _times(self, rows: Int64s) -> Int64s:
        """Each row has an equal part of the thirty days, and lies in it by chance."""
        part = max(1, _SPAN // self.rows)
        word = words(self.seed, "log.time", rows)
        times = START + rows * (_SPAN / self.rows) + below(word, min(part, 1 << 31))
        is_late = draw(self.seed, "log.is_late", rows, _MILLION) < round(self.late * _MILLION)
        delay = (1 + below(word, _LATEST_SECONDS, shift=0)) * np.int64(_SECOND)
        return np.maximum(times.astype(np.int64) - is_late * delay, START)

    def _urls(self, rows: Int64s, host: pa.StringArray) -> pa.StringArray:
        """A page of the host, of which there are a million, and for every other request a session."""
        word = words(self.seed, "log.url", rows)
        section = chosen(_SECTIONS, below(word, len(_SECTIONS), shift=61, bits=3))
        page = numbered(below(word, _MILLION, shift=1), after=".html")
        session = numbered(words(self.seed, "log.session", rows), before="?session=")
        has_session = pa.array((word & np.uint64(1)) == 1)
        query = pc.if_else(has_session, session, "")
        return pc.binary_join_element_wise("https://", host, section, page, query, "")

    def _agents(self, rows: Int64s) -> pa.StringArray:
        word = words(self.seed, "log.agent", rows)
        system = chosen(_SYSTEMS, below(word, len(_SYSTEMS), shift=56, bits=8))
        browser = chosen(_BROWSERS, below(word, len(_BROWSERS), shift=48, bits=8))
        major = numbered(90 + below(word, 40, shift=32, bits=16))
        build = numbered(below(word, 7_000, shift=0, bits=32))
        return pc.binary_join_element_wise("Mozilla/5.0 (", system, ") ", browser, "/", major, ".0.", build, "")


def _uuids(high: Words, low: Words) -> pa.StringArray:
    """UUIDs of version 4 as text, from two words each."""
    shifts = np.arange(60, -4, -4).astype(np.uint64)
    digits = np.concatenate([high[:, np.newaxis] >> shifts, low[:, np.newaxis] >> shifts], axis=1) & np.uint64(15)
    digits[:, 12] = 4
    digits[:, 16] = 8 | (digits[:, 16] & np.uint64(3))
    places = [place for place in range(36) if place not in _DASHES]
    letters = np.full((len(digits), 36), ord("-"), np.uint8)
    letters[:, places] = _HEX[digits]
    return fixed_texts(letters)
