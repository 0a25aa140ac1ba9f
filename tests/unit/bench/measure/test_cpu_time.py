"""Processor time: of the timed part alone, whoever waits meanwhile."""

import time
from threading import Thread

from bench.measure.cpu_time import CpuMeter


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_work_of_all_threads_counts_and_waiting_does_not() -> None:
    meter = CpuMeter(in_java=False)

    def timed() -> str:
        threads = [Thread(target=work, args=(0.05,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        for thread in threads:
            thread.join()
        return "done"

    assert meter.metered(lambda: timed)()() == "done"
    assert 0.1 <= meter.seconds[0] < 0.3


def test_preparation_does_not_count() -> None:
    meter = CpuMeter(in_java=False)

    def prepare() -> object:
        work(0.1)
        return lambda: None

    for _ in range(2):
        meter.metered(prepare)()()  # type: ignore[arg-type]
    assert len(meter.seconds) == 2
    assert max(meter.seconds) < 0.05
