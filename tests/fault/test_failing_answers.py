"""Every kind of change through a REST catalog whose answers are lost, broken, late or refused, at each of its commits:
the change is made once, or not, or said to be unknown, and no file that the table needs is deleted.

`tests/contract/test_rest_faults.py` has the sequences of faults; here are the changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import icebench
from icebench.engine.catalog.filesystem import FileSystemCatalog
from icebench.engine.catalog.rest import RestCatalog
from icebench.engine.catalog.rest_session import open_session
from icebench.engine.storage.local import LocalStore
from icebench.errors import CommitStateUnknown, EngineError
from tests.fault.campaign import Figures, sizes
from tests.fault.documents import QUICK
from tests.fault.test_failing_requests import CHANGES, NAME, Warehouse, local_directory
from tests.services.rest_over_catalog import FAULTS, Fault, RestOverCatalog
from tests.services.scripted_http import scripted_server

QUICK_FAULTS = [fault for fault in FAULTS if fault != "slow"]


@pytest.mark.parametrize("name", CHANGES)
@sizes(5, 1)
def test_a_change_happens_once_or_not(tmp_path: Path, name: str, figures: Figures, size: int) -> None:
    warehouse = local_directory(tmp_path)
    warehouse.create()
    warehouse.reset()
    old = warehouse.state()
    with warehouse.table() as table:
        CHANGES[name](table)
    new = warehouse.state()
    runs: list[tuple[Fault, ...]] = [(fault,) for fault in FAULTS]
    runs += itertools.product(QUICK_FAULTS, repeat=2)
    chosen = runs[len(name) % size :: size]
    if size > 1:
        chosen = chosen[:5]
    outcomes: dict[str, int] = {}
    for faults in chosen:
        warehouse.reset()
        outcome = attempt(warehouse, str(tmp_path / "wh"), CHANGES[name], faults)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        expected = {"acknowledged": [new], "failed": [old], "unknown": [old, new]}[outcome]
        assert warehouse.state() in expected, f"{faults}: {outcome}"
        assert warehouse.referenced() <= warehouse.stored(), faults
        if outcome == "failed":
            assert warehouse.referenced() == warehouse.stored(), faults
    figures(runs=len(chosen), **outcomes)


def attempt(
    warehouse: Warehouse, place: str, change: Callable[[icebench.Table], object], faults: Sequence[Fault]
) -> str:
    """Make a change through a server with these faults; what the writer gets back."""
    behind = FileSystemCatalog(place, LocalStore(durable=False))
    served = RestOverCatalog(behind, faults)
    with scripted_server(served) as server:
        session = open_session(server.address, properties={"rest.client.socket-timeout-ms": "500"}, waiting=QUICK)
        catalog = RestCatalog(session)
        try:
            change(icebench.Table(NAME, catalog.load_state(NAME), warehouse.store, catalog))
        except CommitStateUnknown:
            return "unknown"
        except EngineError:
            return "failed"
        finally:
            catalog.close()
            served.deliver()
    return "acknowledged"
