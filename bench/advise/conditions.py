"""Conditions in queries on the rows of one source."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope
from sqlglot.optimizer.simplify import simplify


def joins_of(scope: Scope) -> list[exp.Join]:
    """The joins of a query, in their order."""
    return scope.expression.args.get("joins") or []


def row_conditions(scope: Scope, alias: str) -> Iterator[tuple[exp.Expr, bool]]:
    """The conditions that rows of the source must meet to matter for the result, and whether an outer join may have put
    nulls in the place of its rows before."""
    where = scope.expression.args.get("where")
    is_optional = False
    for join in joins_of(scope):
        own = join.this.alias_or_name.lower() == alias
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if kind == "SEMI":
            side = ""  # rows of either side matter only if they match
        elif kind == "ANTI":
            side = side or "LEFT"  # keeps the outer side's rows that match nothing
        on = join.args.get("on")
        # An outer join keeps rows of its outer side whatever it is joined on.
        is_optional = is_optional or side in ("FULL", "LEFT" if own else "RIGHT")
        if on is not None and side in ("", "LEFT" if own else "RIGHT"):
            yield on, False
    if where is not None:
        yield where.this, is_optional


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that must all hold, constants folded."""
    folded = simplify(condition.copy())
    yield from (folded.flatten() if isinstance(folded, exp.And) else [folded])
