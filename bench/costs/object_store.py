"""A virtual object store: from the counted requests and bytes of a case to seconds and money.

The store answers a request after `latency_seconds`, then sends at most `connection_bytes_per_second`; all answers
together come at most as fast as the client's network. Some requests wait for the answer of another (a manifest list
names the manifests): they are *phases*, one after the other. Within a phase, *stages* run side by side as a pipeline,
each with some requests in flight. Sources of the constants, and how well the seconds agree with a server with such
delays, are in docs/design/object-store-costs.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GIGABYTE = 2**30
"""That prices are for: in its billing examples (S3's FAQ) 100 GB are 107,374,182,400 bytes."""
_QUERIES = 1_000
MODEL_ERROR = 0.1
"""The median error of modelled seconds, as a share, in the run of the study's question ``remote``."""
UNRANKED_SECONDS = 0.5
"""Modelled seconds below this are not ranked: there the error is as large as what layouts differ by."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Where the client stands to the store, and what is paid for that.

    Args:
        name: For people.
        latency_seconds: From a request to the first byte of its answer.
        connection_bytes_per_second: At most, of one answer.
        network_bytes_per_second: At most, of all answers together.
        dollars_per_gigabyte_out: For bytes that leave the store's region.
    """

    name: str
    latency_seconds: float
    connection_bytes_per_second: float
    network_bytes_per_second: float
    dollars_per_gigabyte_out: float = 0.0


LOCAL = Profile(name="local", latency_seconds=0.0005, connection_bytes_per_second=1.0e9, network_bytes_per_second=2.0e9)
SAME_REGION = Profile(
    name="same-region", latency_seconds=0.030, connection_bytes_per_second=90e6, network_bytes_per_second=1.25e9
)
CROSS_REGION = Profile(
    name="cross-region",
    latency_seconds=0.110,
    connection_bytes_per_second=25e6,
    network_bytes_per_second=0.625e9,
    dollars_per_gigabyte_out=0.02,
)
PROFILES = {profile.name: profile for profile in (LOCAL, SAME_REGION, CROSS_REGION)}


@dataclass(frozen=True, kw_only=True)
class Prices:
    """In dollars; by default those of S3 Standard in us-east-1."""

    per_thousand_reads: float = 0.0004
    per_thousand_writes: float = 0.005
    per_gigabyte_month: float = 0.023


S3_STANDARD = Prices()

_OVERLAP = 0.5
"""As measured with eight threads on two processors; see docs/design/object-store-costs.md."""
THREADS = 8
"""Of this project's engine where it reads an object store, on machines of up to as many processors."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Objects, or parts of them, that are fetched alike.

    Args:
        items: How many.
        requests: For each item, one after the other.
        in_flight: Items that are fetched at the same time, at most.
        bytes_read: Of all items.
    """

    items: int
    requests: int = 1
    in_flight: int = 1
    bytes_read: int = 0

    def __post_init__(self) -> None:
        if min(self.items, self.requests, self.bytes_read) < 0 or self.in_flight < 1:
            raise ValueError(f"{self} has a negative quantity, or nothing in flight")

    def seconds(self, profile: Profile) -> float:
        """How long the stage takes by itself."""
        lanes = max(1, min(self.in_flight, self.items))
        speed = min(lanes * profile.connection_bytes_per_second, profile.network_bytes_per_second)
        waves = math.ceil(self.items / lanes) * self.requests
        return waves * profile.latency_seconds + self.bytes_read / speed

    def seconds_of_one(self, profile: Profile) -> float:
        """How long one item takes by itself, of mean size."""
        if not self.items:
            return 0.0
        return Stage(items=1, requests=self.requests, bytes_read=self.bytes_read // self.items).seconds(profile)


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one execution of a case asked of the store.

    Args:
        phases: One after the other; of each the stages, side by side, in the order in which an item passes them.
        seconds: What the case takes where storage takes no time.
        overlap: How much of these seconds or of the waiting, whichever is less, passes at the same time.
    """

    phases: Sequence[Sequence[Stage]]
    seconds: float
    overlap: float = 0.0

    @property
    def requests(self) -> int:
        """Of all phases."""
        return sum(stage.items * stage.requests for phase in self.phases for stage in phase)

    @property
    def bytes_read(self) -> int:
        """Of all phases."""
        return sum(stage.bytes_read for phase in self.phases for stage in phase)


def icebench_work(counters: Mapping[str, int], *, seconds: float, threads: int) -> Work:
    """A plan or a scan of this project's engine from a fresh handle, by the counters of its scan.

    Objects that are read whole take two requests, as pyarrow's S3 file system asks for their size first; so do data and
    delete files until their footer is there. Manifests of deletes (taken to be one) come after those of data, delete
    files before data files; data files are opened ahead while others are read. Bytes of manifests are those of one
    stage; metadata.json and the manifest list, which no counter has apart, count with the files, where any is read.

    Args:
        counters: By name, as `icebench.Counters.as_dict` gives them.
        seconds: What the case takes where no request has a latency.
        threads: Of the engine.
    """
    wholes = counters.get("storage_requests_read", 0)
    parts = counters.get("storage_requests_range_read", 0)
    data = counters.get("files_planned", 0)
    deletes = counters.get("delete_files_loaded", 0) - counters.get("vectors_coalesced", 0)
    total = counters.get("storage_bytes_read", 0)
    manifests = min(total, counters.get("manifest_bytes_decoded", 0))
    lists = min(1, wholes)
    delete_manifests = min(1, wholes - lists, counters.get("delete_files_planned", 0))
    phases = [
        [Stage(items=1, requests=2, bytes_read=0 if parts else total - manifests)],
        [Stage(items=lists, requests=2)],
        [Stage(items=wholes - lists - delete_manifests, requests=2, in_flight=threads, bytes_read=manifests)],
        [Stage(items=delete_manifests, requests=2)],
    ]
    if parts:
        reads = Stage(items=parts - data - deletes, in_flight=threads, bytes_read=total - manifests)
        phases.append([Stage(items=deletes, requests=2, in_flight=threads)])
        phases.append([Stage(items=data, requests=2, in_flight=threads), reads])
    return Work(phases=phases, seconds=seconds, overlap=_OVERLAP if parts and min(threads, data) > 1 else 0.0)


def seconds_on(work: Work, profile: Profile) -> float:
    """How long the case would take: its own work, and the waiting.

    A phase takes as long as its slowest stage, and as one item takes in each of the others: the first on its way there,
    or the last on its way out.
    """
    waiting = 0.0
    for phase in work.phases:
        slowest = max(phase, key=lambda stage: stage.seconds(profile))
        waiting += slowest.seconds(profile)
        waiting += sum(stage.seconds_of_one(profile) for stage in phase if stage is not slowest)
    return work.seconds + waiting - work.overlap * min(work.seconds, waiting)


def undecided_up_to(least: float) -> float:
    """Up to how many modelled seconds something may be as fast as what has the least: reports and the study rank by
    this alone."""
    return max((1 + MODEL_ERROR) * least, UNRANKED_SECONDS)


def dollars_per_thousand_queries(work: Work, profile: Profile) -> float:
    """What a thousand executions cost in requests and transfer; the machine that runs them is not in it."""
    transfer = _QUERIES * work.bytes_read / GIGABYTE * profile.dollars_per_gigabyte_out
    return work.requests * S3_STANDARD.per_thousand_reads + transfer


def dollars_per_month(size_bytes: int) -> float:
    """What a table of this size costs to store."""
    return size_bytes / GIGABYTE * S3_STANDARD.per_gigabyte_month
