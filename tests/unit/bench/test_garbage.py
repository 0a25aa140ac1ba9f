import gc
from functools import partial

import pytest

from icebench.bench.garbage import keep_out, out_of_collection


@pytest.mark.parametrize("frozen_before", [False, True])
def test_what_exists_is_out_of_collection_for_a_while(monkeypatch: pytest.MonkeyPatch, frozen_before: bool) -> None:
    done: list[str] = []
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, partial(done.append, name))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 5 * frozen_before)
    try:
        with out_of_collection():
            assert done == ["collect", "freeze"]
            keep_out()
            raise ZeroDivisionError
    except ZeroDivisionError:
        assert done == ["collect", "freeze"] * 2 + ([] if frozen_before else ["unfreeze"])
    else:
        pytest.fail("the error is lost")
