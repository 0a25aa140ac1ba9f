"""Streams that are restarted anywhere, beside commits, rollbacks, branches and expiries: each batch is in a branch once,
or the batch is refused because nobody can know.

The oracle reads rows: each batch adds one row of its own, so a batch that a branch has twice, or that was reported as
committed and is missing, shows.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st

import engine
from engine.commit.changes.expire_snapshots import ExpireSnapshots
from engine.commit.changes.stream_batch import StreamBatch
from engine.errors import FileNotFound, Invalid, ValidationFailed

SCHEMA = pa.schema([pa.field("stream", pa.string()), pa.field("batch", pa.int64())])
NEVER = "2999-01-01T00:00:00Z"
STREAMS = ("s", "t")
FOREIGN = "none"
