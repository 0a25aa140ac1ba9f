from __future__ import annotations

import gc
import re
import signal
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from icebench.bench.execution.interruption import Interruption, Stopped, same_handler


class Heard:
    """What an interruption said, its end among it; `more` waits for something new."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self._new = threading.Semaphore(0)
        self.interruption = Interruption(say=self._say, end=lambda: self._say("the end"))

    def _say(self, line: str) -> None:
        self.said.append(line)
        self._new.release()

    def more(self) -> None:
        assert self._new.acquire(timeout=60)


@pytest.fixture
def heard() -> Iterator[Heard]:
    # In the background of a shell it is ignored.
    own = signal.signal(signal.SIGINT, signal.default_int_handler)
    before = signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)
    yield Heard()
    assert (signal.getsignal(signal.SIGINT), signal.set_wakeup_fd(-1)) == before
    signal.signal(signal.SIGINT, own)


class Referred:
    """Something to refer to weakly."""


def test_ctrl_c_is_heard_wherever_the_interpreter_is(heard: Heard) -> None:
    """Within a callback, where what Spark's handler raises is printed and lost."""

    def session() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def run() -> None:
        with heard.interruption.listening():
            with same_handler():
                session()
            referred = Referred()
            kept = weakref.ref(referred, lambda _: signal.raise_signal(signal.SIGINT))
            heard.interruption.check()
            del referred
            gc.collect()
            assert kept() is None
            heard.more()
            heard.interruption.check()

    with pytest.raises(Stopped, match=r"^stopped; nothing was measured yet$"):
        run()
    assert heard.said == ["icebench: stopping after this sample; Ctrl-C again stops at once"]


def test_a_second_ctrl_c_ends_the_process_at_once(heard: Heard) -> None:
    heard.interruption.path = Path("results/runs/my run.jsonl")
    with heard.interruption.listening():
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            heard.more()
        heard.more()
    advice = "stopped; go on with: icebench run --resume 'results/runs/my run.jsonl'"
    assert heard.said[1:] == [f"icebench: {advice}", "the end"]
    with pytest.raises(Stopped, match=re.escape(advice)):
        heard.interruption.check()


def test_what_is_raised_once_the_run_is_to_stop_is_a_stop(heard: Heard) -> None:
    with pytest.raises(ZeroDivisionError), heard.interruption.listening():
        raise ZeroDivisionError
    with pytest.raises(Stopped), heard.interruption.listening():
        raise KeyboardInterrupt
    heard.interruption.asked = True
    with pytest.raises(Stopped), heard.interruption.listening():
        raise ZeroDivisionError


def test_a_process_that_ignores_ctrl_c_goes_on_to_do_so(heard: Heard) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with heard.interruption.listening():
            signal.raise_signal(signal.SIGINT)
            heard.interruption.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard.said == []
