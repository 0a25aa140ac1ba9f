"""Whatever happens to requests and answers on the way to a REST catalog, a change is made once, or not, or said to be
unknown; and no file that a visible snapshot needs is deleted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.commit.changes.append import Append
from icebench.engine.commit.commit_loop import Transaction
from icebench.engine.commit.committer import Committed, Conflicted, Unknown
from icebench.engine.commit.retry import Waiting
from icebench.engine.spec.requirements import AssertTableUuid
from icebench.engine.spec.updates import SetLocation, SetProperties
from icebench.errors import (
    CommitConflict,
    CommitStateUnknown,
    EngineError,
    Invalid,
    NotFound,
    StorageFailed,
    Unsupported,
)
from tests.services.processes import free_port
from tests.services.rest_over_catalog import FAULTS, Fault, RestOverCatalog
from tests.services.scripted_http import Reply, Seen, scripted_server
from tests.unit.engine.commit.tables import NAME, World, data_file, metadata, world

AFTERMATH: dict[Fault, type[Committed | Conflicted | Unknown]] = {
    "none": Committed,
    "lost-before": Unknown,
    "lost-after": Unknown,
    "half-an-answer": Unknown,
    "garbled": Unknown,
    "slow": Unknown,
    "503-before": Unknown,
    "503-after": Unknown,
    "502-after": Unknown,
    "sent-twice": Conflicted,
    "late": Unknown,
}
"""What a commit of one request comes back as. 429 is not among them: the transport waits and sends again."""

REFUSALS: tuple[Fault, ...] = ("429", "401", "403", "404", "419")
QUICK_FAULTS = [fault for fault in FAULTS if fault != "slow"]
BASE = world().committer.state
"""What a commit is staged on; not sent to servers."""
PATIENCE = {"rest.client.socket-timeout-ms": "500"}
QUICK = Waiting(sleep=lambda _: None, monotonic=lambda: 0.0, random=lambda: 0.0)


def client(address: str) -> RestCatalog:
    return RestCatalog(open_session(address, properties=PATIENCE, waiting=QUICK))


def append(catalog: RestCatalog, w: World) -> EngineError | None:
    """Append a data file; the error, if it is said not to be there."""
    try:
        Transaction(catalog, NAME, w.staging(), QUICK).commit([Append(data_files=[data_file("ours")])])
    except EngineError as error:
        return error
    return None


def check_append_under(faults: Sequence[Fault], *, takes_keys: bool = False) -> None:
    w = world(metadata(properties={"commit.retry.num-retries": "2"}))
    served = RestOverCatalog(w.committer, faults, takes_keys=takes_keys)
    with scripted_server(served) as server:
        catalog = client(server.address)
        error = append(catalog, w)
        catalog.close()
    served.deliver()
    files = set(w.files())
    if error is None:
        assert files == {"ours"}
    elif not isinstance(error, CommitStateUnknown):
        # Nothing happened, and nothing will: the files are gone.
        assert isinstance(error, CommitConflict | StorageFailed | NotFound)
        assert not files
        assert not w.stored()
    assert len(w.metadata.snapshots) == len(files)


PAIRS = [*itertools.product(QUICK_FAULTS, repeat=2), ("slow", "none"), ("slow", "503-after"), ("late", "slow")]


@pytest.mark.parametrize("faults", PAIRS, ids="-then-".join)
def test_an_append_happens_once_or_not(faults: Sequence[Fault]) -> None:
    check_append_under(faults)


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in (*REFUSALS, "none")])
def test_a_refusal_of_the_second_copy_says_nothing_of_the_first(fault: Fault, refusal: Fault) -> None:
    """With an idempotency key a request is sent until it is answered."""
    check_append_under([fault, *[refusal] * 20], takes_keys=True)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(QUICK_FAULTS), min_size=3, max_size=6), st.booleans())
def test_an_append_happens_once_or_not_under_many_faults(faults: list[Fault], takes_keys: bool) -> None:
    check_append_under(faults, takes_keys=takes_keys)


@pytest.mark.parametrize("fault", AFTERMATH)
def test_a_commit_is_sent_once_and_says_what_is_known(fault: Fault) -> None:
    w = world()
    with scripted_server(RestOverCatalog(w.committer, [fault])) as server:
        catalog = client(server.address)
        staged = Append(data_files=[data_file("ours")]).stage(w.metadata, w.staging())
        outcome = catalog.commit(NAME, w.committer.state, staged.requirements, staged.updates)
        catalog.close()
        assert server.count("POST") == 1
    assert type(outcome) is AFTERMATH[fault]
    if isinstance(outcome, Conflicted):
        # The commit itself may have been in its own way.
        assert not outcome.is_certain
        assert "ours" in w.files()


def test_a_commit_that_was_turned_away_is_sent_again() -> None:
    w = world()
    with scripted_server(RestOverCatalog(w.committer, ["429", "429"])) as server:
        catalog = client(server.address)
        outcome = catalog.commit(NAME, w.committer.state, [], [SetProperties({"a": "1"})])
        catalog.close()
        assert server.count("POST") == 3
    assert isinstance(outcome, Committed)


def test_the_load_being_too_high_for_long_is_a_certain_conflict() -> None:
    w = world()
    with scripted_server(RestOverCatalog(w.committer, ["429"] * 9)) as server:
        catalog = client(server.address)
        outcome = catalog.commit(NAME, w.committer.state, [], [SetProperties({"a": "1"})])
        catalog.close()
    assert outcome == Conflicted("slow down", is_certain=True)
    assert not w.metadata.properties


def test_a_server_that_is_not_there_changes_nothing() -> None:
    w = world()
    with scripted_server(RestOverCatalog(w.committer)) as server:
        catalog = client(server.address)
    catalog.close()
    # Definite: the request never left.
    with pytest.raises(StorageFailed, match="refused"):
        catalog.commit(NAME, w.committer.state, [], [SetProperties({"a": "1"})])
    with pytest.raises(StorageFailed, match="refused"):
        client(f"http://127.0.0.1:{free_port()}")


def refusing(status: int) -> Callable[[Seen], Reply]:
    """A server that answers everything but the question for its configuration with that status."""

    def answer(request: Seen) -> Reply:
        if request.path == "/v1/config":
            return Reply(body={"defaults": {}, "overrides": {}})
        error = {"error": {"message": "because\nof many things", "type": "SomeException", "code": status}}
        return Reply(status=status, body=error)

    return answer


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, StorageFailed), (403, StorageFailed), (413, Invalid), (422, Invalid), (307, StorageFailed)],
)
def test_a_refused_commit_is_definite(status: int, expected: type[EngineError]) -> None:
    with scripted_server(refusing(status)) as server:
        catalog = client(server.address)
        with pytest.raises(expected, match=r"table db\.t: because .*SomeException") as raised:
            catalog.commit(NAME, BASE, [AssertTableUuid("u")], [SetLocation("/x")])
        catalog.close()
    assert not isinstance(raised.value, CommitStateUnknown)
    assert "\n" not in str(raised.value)


def test_a_refused_commit_may_be_the_second_copy_of_one_that_was_carried_out() -> None:
    with scripted_server(refusing(400)) as server:
        catalog = client(server.address)
        outcome = catalog.commit(NAME, BASE, [AssertTableUuid("u")], [SetLocation("/x")])
        catalog.close()
    assert isinstance(outcome, Conflicted)
    assert not outcome.is_certain
    assert isinstance(outcome.error, Invalid)
    assert outcome.reason == "table db.t: because (HTTP 400, SomeException)"


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 507, 599])
def test_a_commit_at_which_the_server_fails_is_unknown(status: int) -> None:
    with scripted_server(refusing(status)) as server:
        catalog = client(server.address)
        outcome = catalog.commit(NAME, BASE, [AssertTableUuid("u")], [SetLocation("/x")])
        catalog.close()
        assert server.count("POST") == 1
    assert isinstance(outcome, Unknown)
    assert f"HTTP {status}" in str(outcome.cause)


def test_what_a_server_cannot_do_is_definite() -> None:
    with scripted_server(refusing(501)) as server:
        catalog = client(server.address)
        with pytest.raises(Unsupported, match="HTTP 501"):
            catalog.commit(NAME, BASE, [], [SetLocation("/x")])
        catalog.close()
