"""Seconds that queries and rewrites take on this machine, fitted to reads and rewrites that were timed.

The seconds of a read are a sum of rates times amounts: of the query itself (its metadata), of each manifest, data file,
row group, byte and value. Rates are not negative (Lawson and Hanson's least squares), errors are relative, as queries
of all sizes matter, and reads that are far off weigh less (Huber). Amounts that always go together, such as files and
row groups where each file has one, have no rates of their own in the data: rates are drawn to the assumed ones as much
as a single read that is off by a fiftieth for each time that a rate is as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

_LEAST_READS = 8
"""With fewer reads, rates are not fitted."""
_PRIOR = 0.02
_ROUNDS = 5
_HUBER = 1.345
_LEAST_SPREAD = 0.02
"""Of relative errors: what the clock gives by itself."""
_NORMAL = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""

Amounts = tuple[float, float, float, float, float, float]
"""What is read, in the order of the fields of `Rates`: 1, manifests, files, row groups, bytes, values."""


@dataclass(frozen=True, kw_only=True)
class TimedRead:
    """A read that was timed.

    Args:
        amounts: What was read.
        seconds: Of the clock.
    """

    amounts: Amounts
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds of each amount, from files of this machine. The defaults are assumed, where too little was timed.

    Args:
        query: Whatever it reads.
        manifest: To read and decode.
        file: To open a data or delete file and to decode its footer.
        row_group: To ask for, and to begin.
        byte: Compressed, of the columns that are read.
        value: A row of one of these columns.
        decoding: Bytes per second, of all reads together: their bytes and values.
        error: Root of the mean squared relative error over the reads of the table itself, or over all where none of
            these was timed; None where rates are assumed.
        reads: How many were timed.
    """

    query: float = 2e-3
    manifest: float = 3e-4
    file: float = 5e-4
    row_group: float = 2e-4
    byte: float = 2e-9
    value: float = 4e-9
    decoding: float = 200e6
    error: float | None = None
    reads: int = 0

    def seconds(self, amounts: Amounts) -> float:
        """How long a read takes on this machine, from local files."""
        return sum(rate * amount for rate, amount in zip(_rates(self), amounts, strict=True))


ASSUMED = Rates()


def fit(reads: Sequence[TimedRead], own: Sequence[TimedRead] = ()) -> Rates:
    """The rates that give the seconds of all reads best; the assumed ones where there are too few.

    Args:
        reads: Of tables that are like the one that is asked for, but smaller.
        own: Of that table. All rates are multiplied by the median of the factors by which these are off.
    """
    both = (*own, *reads)
    if len(both) < _LEAST_READS:
        return Rates(reads=len(both))
    amounts, seconds = np.array([each.amounts for each in both]), np.array([each.seconds for each in both])
    fitted = np.array(_fitted(amounts, seconds, _rates(ASSUMED), [_PRIOR] * amounts.shape[1]))
    nearest = len(own) or len(both)
    factors = seconds[:nearest] / (amounts[:nearest] @ fitted)
    scale = float(np.median(factors)) if own else 1.0
    found, error = (scale * fitted).tolist(), float(np.sqrt(np.mean((scale / factors - 1) ** 2)))
    read, decoding = amounts[:, 4].sum(), float((amounts[:, 4:] @ np.array(found[4:])).sum())
    names = ("query", "manifest", "file", "row_group", "byte", "value")
    return Rates(
        **dict(zip(names, found, strict=True)),
        decoding=float(read / decoding) if decoding else ASSUMED.decoding,
        error=error,
        reads=len(both),
    )


@dataclass(frozen=True, kw_only=True)
class TimedRewrite:
    """A rewrite that was timed: the files and rows that it wrote."""

    files: float
    rows: float
    seconds: float


_ASSUMED_REWRITE = (5e-2, 5e-3, 3e-8)
"""Seconds of a rewrite, of each file that it writes, and of each comparison of a sort: the rows times their binary
logarithm."""
_PRIORS_OF_REWRITE = (_PRIOR, 0.15, _PRIOR)
"""What dividing rows into partitions takes grows with the rows. Where all layouts have few files, it could be put down
to these as well, which do not grow: so the seconds of a file are drawn to what is assumed more than the others."""


def rewrite_seconds(rewrites: Sequence[TimedRewrite], one: TimedRewrite, *, files: float, rows: float) -> float:
    """What one of the rewrites takes for more rows: as rates that are fitted to all of them say, times as much as the
    one took of what they say of it.

    Args:
        rewrites: Of the same rows, or some of them, into other layouts.
        one: Of these.
        files: To write.
        rows: To write.
    """
    amounts = np.array([(1, each.files, _comparisons(each.rows)) for each in rewrites])
    found = _fitted(amounts, np.array([each.seconds for each in rewrites]), _ASSUMED_REWRITE, _PRIORS_OF_REWRITE)

    def of(files: float, rows: float) -> float:
        return found[0] + found[1] * files + found[2] * _comparisons(rows)

    return of(files, rows) * one.seconds / of(one.files, one.rows)


def _comparisons(rows: float) -> float:
    return rows * math.log2(max(rows, 2))


def _fitted(
    amounts: npt.NDArray[np.float64],
    seconds: npt.NDArray[np.float64],
    assumed: Sequence[float],
    priors: Sequence[float],
) -> list[float]:
    """Rates that are not negative; of each, how much it is drawn to what is assumed."""
    shares = amounts * np.array(assumed) / seconds[:, np.newaxis]
    weights = np.ones(len(seconds))
    for _ in range(_ROUNDS):
        rows = np.vstack([shares * weights[:, np.newaxis], np.diag(priors)])
        multiples, _ = nnls(rows, np.concatenate([weights, priors]))
        off = np.abs(shares @ multiples - 1)
        spread = max(_LEAST_SPREAD, _NORMAL * float(np.median(off)))
        weights = np.sqrt(np.minimum(1, _HUBER * spread / np.maximum(off, 1e-12)))
    return list((multiples * np.array(assumed)).tolist())


def _rates(rates: Rates) -> Amounts:
    return rates.query, rates.manifest, rates.file, rates.row_group, rates.byte, rates.value
