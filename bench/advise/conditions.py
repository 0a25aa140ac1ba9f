"""Conditions in queries on the rows of one source, also those of outer queries on what a subquery returns."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope
from sqlglot.optimizer.simplify import simplify

_OF_LACKING_ROWS = "also finds rows that an outer join lacks"
_LATE = "is tested after a limit, a window function or totals"
_SHARED = "is on one of several uses of a subquery"
_FIND_NULLS = (exp.Is, exp.Coalesce, exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPUTED = (exp.AggFunc, exp.Window)
_NEED_ALL_ROWS = ("where", "group", "having", "qualify", "order", "sort", "distinct", "joins", "laterals")
_ELSEWHERE = "?"
"""Stands for the name of a source that the query has not named."""


@dataclass(frozen=True)
class Condition:
    """One that rows must meet to matter for a result.

    Args:
        expression: In the columns of the query's sources.
        obstacle: Why rows that do not meet it are still needed; None if they are not.
    """

    expression: exp.Expr
    obstacle: str | None = None


def joins_of(scope: Scope) -> list[exp.Join]:
    """The joins of a query, in their order."""
    return scope.expression.args.get("joins") or []


def row_conditions(scope: Scope, alias: str, outer: Sequence[Condition] = ()) -> Iterator[Condition]:
    """The conditions on rows of a source.

    Args:
        scope: The query.
        alias: Of the source in it.
        outer: Those of outer queries, in the columns of this one's sources (`outer_conditions`).
    """
    where = scope.expression.args.get("where")
    is_optional = False  # a join may have put nulls in the place of the source's rows
    for join in joins_of(scope):
        own = join.this.alias_or_name.lower() == alias
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        if kind == "SEMI":
            side = ""  # rows of either side matter only if they match
        elif kind == "ANTI":
            side = side or "LEFT"  # keeps the outer side's rows that match nothing
        on = join.args.get("on")
        # An outer join keeps rows of its outer side whatever it is joined on.
        if on is not None and side in ("", "LEFT" if own else "RIGHT"):
            yield from _of_rows(map(Condition, conjuncts(on)), is_optional=is_optional)
        is_optional = is_optional or side in ("FULL", "LEFT" if own else "RIGHT")
    late = [*(map(Condition, conjuncts(where.this)) if where else ()), *outer]
    yield from _of_rows(late, is_optional=is_optional)


def _of_rows(found: Iterable[Condition], *, is_optional: bool) -> Iterator[Condition]:
    for each in found:
        finds_nulls = is_optional and each.expression.find(*_FIND_NULLS)
        yield Condition(each.expression, _OF_LACKING_ROWS) if finds_nulls else each


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of a condition that must all hold, constants folded."""
    folded = simplify(condition.copy())
    yield from (folded.flatten() if isinstance(folded, exp.And) else [folded])


def is_limited(scope: Scope) -> bool:
    """Whether a query returns any rows up to a limit, its own or that of a query around it."""
    query = scope.expression
    if not isinstance(query, exp.Select) or any(map(query.args.get, _NEED_ALL_ROWS)) or query.find(*_COMPUTED):
        return False
    if query.args.get("limit") or not scope.is_derived_table or scope.parent is None:
        return bool(query.args.get("limit"))
    return is_limited(scope.parent)


def outer_conditions(scopes: Sequence[Scope]) -> Mapping[int, Sequence[Condition]]:
    """What queries ask of the rows of their subqueries and common table expressions, and of their own groups.

    Args:
        scopes: Those of a statement, inner ones first.

    Returns:
        By the id of a query's expression, in the columns of its sources.
    """
    aliases = {_ELSEWHERE, *(name.lower() for scope in scopes for name in scope.sources)}
    uses = Counter(id(source.expression) for scope in scopes for _, source in _subqueries(scope))
    found: dict[int, list[Condition]] = defaultdict(list)
    for scope in reversed(scopes):
        own = found[id(scope.expression)]
        if isinstance(scope.expression, exp.Select):
            for clause in filter(None, map(scope.expression.args.get, ("having", "qualify"))):
                asked = (
                    _inner(Condition(each), None, scope, scope.expression, aliases) for each in conjuncts(clause.this)
                )
                own += filter(None, asked)
        for alias, source in _subqueries(scope):
            is_shared = uses[id(source.expression)] > 1
            for each in (*row_conditions(scope, alias, own), *_shared_columns(scope, alias)):
                outer = Condition(each.expression, _SHARED) if is_shared else each
                for select in _selects(source.expression):
                    if inner := _inner(outer, alias, source, select, aliases):
                        found[id(select)].append(inner)
    return found


def _subqueries(scope: Scope) -> Iterator[tuple[str, Scope]]:
    """The sources of a query that are queries."""
    for name in sorted({name for name, _ in scope.references}):
        source = scope.sources.get(name)
        if isinstance(source, Scope) and isinstance(source.expression, exp.Query):
            yield name.lower(), source


def _selects(query: exp.Expr) -> Iterator[exp.Select]:
    """Those whose rows a query returns."""
    if isinstance(query, exp.SetOperation):
        for side in (query.this, query.expression):
            yield from _selects(side.unnest())
    elif isinstance(query, exp.Select):
        yield query


def _shared_columns(scope: Scope, alias: str) -> Iterator[Condition]:
    for join in joins_of(scope):
        for each in join.args.get("using") or ():
            yield Condition(exp.EQ(this=exp.column(each.name, alias), expression=exp.column(each.name, _ELSEWHERE)))


def _inner(
    condition: Condition, alias: str | None, source: Scope, select: exp.Select, aliases: AbstractSet[str]
) -> Condition | None:
    """A condition on what a query returns, as one on the rows of its sources; None if it is on groups or windows.

    Args:
        condition: Of the outer query.
        alias: Of the source in it; None for a clause of the query itself.
        source: The query.
        select: The query, or one of those that it unites.
        aliases: Of all sources of the statement.
    """
    root = exp.Paren(this=condition.expression.copy())
    assert isinstance(source.expression, exp.Query)
    names = [name.lower() for name in source.outer_columns or source.expression.named_selects]
    for column in list(root.find_all(exp.Column)):
        path = [part.name.lower() for part in column.parts]
        is_named = alias in path[:-1]
        path = path[path.index(str(alias)) + 1 :] if is_named else path
        is_other = not is_named and len(path) > 1 and path[0] in aliases
        origin = None if is_other else _origin(path, names, select)
        if origin is not None:
            column.replace(origin.copy() if isinstance(origin, exp.Column) else exp.paren(origin))
        elif alias is not None:
            other = ".".join(path)
            other = other if "." in other else f"{_ELSEWHERE}.{other}"  # is no column of this source
            column.replace(exp.Column(this=exp.to_identifier(other, quoted=True)))
    if any(each.find_ancestor(exp.Query) is None for each in root.find_all(*_COMPUTED)):
        return None
    return Condition(root.this, condition.obstacle or _obstacle(root, select, is_own=alias is None))


def _origin(path: Sequence[str], names: Sequence[str], select: exp.Select) -> exp.Expr | None:
    """What a query's column is in the columns of its sources; None if it has no such column.

    Args:
        path: The column's name, and those of fields of a struct.
        names: Of the query's columns; of a union those of its first query.
        select: The query, or one of the union.
    """
    outputs = select.expressions
    stars = [each for each in outputs if each.is_star]
    if stars:
        found = next((each for each in outputs if each.alias_or_name.lower() == path[0]), None)
        found = found or exp.column(path[0], (len(stars) == 1 and stars[0].text("table")) or None)
    else:
        found = dict(zip(names, outputs, strict=False)).get(path[0])
    found = found and found.unalias()
    if len(path) == 1 or not isinstance(found, exp.Column):
        return found if len(path) == 1 else None
    return exp.column(*reversed([*(part.name for part in found.parts), *path[1:]]))


def _obstacle(part: exp.Expr, select: exp.Select, *, is_own: bool) -> str | None:
    """Why rows that do not meet a condition on the result of a query change it."""
    group, distinct, within = select.args.get("group"), select.args.get("distinct"), select.find_ancestor(exp.With)
    columns = {column.name.lower() for column in part.find_all(exp.Column)}
    for window in select.find_all(exp.Window):
        keys = {key.name.lower() for key in window.args.get("partition_by") or () if isinstance(key, exp.Column)}
        if not columns <= keys:
            return _LATE
    if (group and group.find(exp.Rollup, exp.Cube, exp.GroupingSets)) or (distinct and distinct.args.get("on")):
        return _LATE
    node: exp.Expr | None = select
    while isinstance(node, exp.Query) and not is_own:
        if node.args.get("limit") or node.args.get("offset"):
            return _LATE
        node = node.parent
    return _SHARED if within and within.recursive else None
