"""Counts the work of every case of `icebench.bench.gate.cases.work`, on small tables in a temporary directory.

Run as ``python -m icebench.bench.gate.cases.count_cases [CASE]...``, the results are printed as a baseline.
"""

from __future__ import annotations

import gc
import platform
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from importlib.metadata import version
from tempfile import TemporaryDirectory

import icebench
from icebench.bench.errors import BenchError
from icebench.bench.garbage import out_of_collection
from icebench.bench.gate.cases.fresh_processes import count_fresh
from icebench.bench.gate.cases.library_calls import CALLS, one_processor, probed
from icebench.bench.gate.cases.tables import NAMESPACE, Scale, build
from icebench.bench.gate.cases.work import Case, cases
from icebench.bench.gate.decisions.baseline import Baseline, CaseResult, encode
from icebench.bench.gate.decisions.counter_kinds import is_within


class CaseFailed(BenchError):
    """A case raised something."""


NO_ROWS = "no rows"
_MOST_RUNS = 4
_PLACE = "/tmp"  # noqa: S108 - what is made there has a random name, as everywhere
"""Bytes and calls depend on how long and how deep paths are: the same place, whatever TMPDIR says."""


@contextmanager
def built(scale: Scale | None = None) -> Iterator[tuple[str, icebench.Catalog]]:
    """Context of the folder and the catalog of the tables of all cases, which are removed at its end."""
    icebench.prepare_kernels()
    with (
        TemporaryDirectory(prefix="icebench-gate-", dir=_PLACE) as folder,
        closing(icebench.load_catalog(folder)) as catalog,
    ):
        build(catalog, scale or Scale())
        with out_of_collection():
            yield folder, catalog


def run_cases(chosen: Callable[[str], bool] = lambda _: True) -> dict[str, CaseResult]:
    """What every case (every chosen one, by name) counts.

    Raises:
        CaseFailed: One of them raised something.
    """
    found = {}
    with built() as (warehouse, catalog), one_processor():
        for name, counters in count_fresh(warehouse, NAMESPACE, chosen).items():
            found[name] = CaseResult(counters=counters, checksum=NO_ROWS)
        for name, case in cases().items():
            if chosen(name):
                try:
                    found[name] = count(case, catalog)
                except Exception as error:
                    raise CaseFailed(f"{name}: {type(error).__name__}: {error}") from error
    return found


def count(case: Case, catalog: icebench.Catalog) -> CaseResult:
    """Run a case until its calls repeat, and give the last run: the first ones import modules, load machine code and
    fill the caches of the process."""
    before = 0
    answer = None
    for _ in range(_MOST_RUNS):
        answer = None  # that of the run before is gone before the next one
        counters = icebench.Counters()
        timed = case.prepare(catalog, counters)
        gc.collect()
        gc.freeze()  # what earlier cases have loaded is no garbage of this one
        with probed() as libraries:
            answer = timed()
        if is_within(CALLS, before, libraries[CALLS]):
            break
        before = libraries[CALLS]
    checksum = NO_ROWS if case.checksum is None else case.checksum(catalog, answer)
    return CaseResult(counters={**counters.as_dict(), **libraries}, checksum=checksum)


def counted(names: Collection[str] = ()) -> Baseline:
    """What is counted now, of all cases or those of these names, as a baseline."""
    return Baseline(cases=run_cases(lambda name: not names or name in names), environment=environment())


def environment() -> dict[str, str]:
    """What the counts that are not exact depend on: the system, the interpreter and the libraries."""
    return {
        "system": platform.system(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numba", "numpy", "pyarrow")},
    }


def main() -> None:
    """Print the results."""
    sys.stdout.write(encode(counted(sys.argv[1:])))


if __name__ == "__main__":
    main()
