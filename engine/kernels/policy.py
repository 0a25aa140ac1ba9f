"""When a process loads compiled kernels, and when it compiles them: one budget for all kernels.

A kernel is a compiled function beside a slower way to the same result: the same function in plain Python, or a library.
Loading compiled code takes longer than planning a small table, so a process goes the slower way until that has cost
about as much as loading. At worst it pays twice; a process with little to do never loads anything.

======================  ==============================================================================
cost of the slower way  what happens
======================  ==============================================================================
60 ms                   machine code that an earlier process kept is loaded (`icebench.engine.kernels.machine_code`)
0.5 s                   Numba is loaded, and compiles or takes code from its cache
2 s                     kernels that take longest to compile are compiled, where no code was kept
======================  ==============================================================================

Code is kept beside the source, in the user's cache directory, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

LOAD_AFTER_NS = 60_000_000
"""Loading llvmlite and linking kept machine code takes this long."""
COMPILE_AFTER_NS = 500_000_000
"""Loading Numba takes some 0.6 s."""
COMPILE_LARGE_AFTER_NS = 2_000_000_000
"""Compiling the kernels of Parquet footers takes up to 8 s, once on a machine."""


class _Process:
    spent_ns = 0
    has_numba = False


def fits_budget(work_ns: int, budget_ns: int) -> bool:
    """Whether the slower way may be taken for work that costs so much; adds the cost to what was spent if so."""
    if _Process.spent_ns + work_ns > budget_ns:
        return False
    _Process.spent_ns += work_ns
    return True


def should_interpret(work_ns: int) -> bool:
    """Whether to run a kernel of Numba as plain Python; as `fits_budget`, and never once Numba is loaded."""
    return not _Process.has_numba and fits_budget(work_ns, COMPILE_AFTER_NS)


def note_numba() -> None:
    """Record that Numba is loaded, after which interpreting saves nothing."""
    _Process.has_numba = True
