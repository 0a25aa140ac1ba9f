"""What SQL statements read: the query in a statement, its tables, and the columns that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

BY_POSITION = (exp.Columns, exp.PositionalColumn)
"""How queries read columns without their names."""
_NO_STATEMENT = ("checkpoint", "clear", "deallocate", "install", "list", "reset", "start")
"""Statements that sqlglot takes for expressions."""
_READ_NO_ROWS = (
    exp.Alter,
    exp.Comment,
    exp.Describe,
    exp.Drop,
    exp.Grant,
    exp.LoadData,
    exp.Refresh,
    exp.Revoke,
    exp.Show,
    exp.TruncateTable,
    exp.Uncache,
    exp.Use,
)
_READERS = re.compile(r"\b(?:select|pivot|unpivot|summarize)\b")
_RUNS = re.compile(r"explain\s*\(?\s*analy[sz]e\b")
_AFTER_GROUPS = (exp.Having, exp.Qualify)


def query_of(statement: exp.Expr) -> exp.Query | None:
    """What a statement reads: its query, or one for the rows that it deletes, updates or merges."""
    args = statement.args
    returning = args["returning"].expressions if args.get("returning") else []
    if isinstance(statement, exp.Merge):
        whens = args["whens"].expressions
        changes = [when.args.get("condition") for when in whens]
        for then in (when.args["then"] for when in whens):
            if isinstance(then, exp.Update):
                changes += then.expressions
            elif isinstance(then, exp.Insert):
                changes.append(then.expression or exp.column(exp.Star(), args["using"].alias_or_name))
        unmatched = {"left" if when.args.get("source") else "right" for when in whens if not when.args["matched"]}
        side = "full" if len(unmatched) == 2 else "".join(unmatched)
        sources = [exp.Join(this=args["using"], on=args["on"], side=side)]
    elif isinstance(statement, exp.Update) or (isinstance(statement, exp.Delete) and (args.get("where") or returning)):
        changes = statement.expressions
        sources = [args["from_"].this] if args.get("from_") else args.get("using") or []
    else:
        return _within(statement)
    query = exp.select("1", *filter(None, changes), *returning).from_(statement.this)
    for source in sources:
        query = query.join(source)
    for name in ("where", "with_"):
        query.set(name, args.get(name))
    return query


def _within(statement: exp.Expr) -> exp.Query | None:
    if isinstance(statement, exp.Query):
        return statement
    shared = statement.args.get("with_")  # as in `with e as (...) insert into o select * from e`
    if shared and isinstance(statement.expression, exp.Query) and not statement.expression.args.get("with_"):
        query = statement.expression.copy()
        query.set("with_", shared.copy())
        return query
    return statement.find(exp.Query)


def is_unknown(statement: exp.Expr, name: str) -> bool:
    """Whether it is not known what a statement reads: an expression, as sqlglot takes ``selct id`` to be,
    or one that reads the table and which sqlglot cannot parse.

    Args:
        statement: Which.
        name: Of the table, without its namespace.
    """
    text = statement.sql().lower().strip()
    if isinstance(statement, (exp.Condition, exp.Alias, exp.Tuple)):
        return not text.startswith(_NO_STATEMENT)
    if not isinstance(statement, exp.Command) or not re.search(rf"\b{re.escape(name)}\b", text):
        return False
    return bool(_RUNS.match(text) if text.startswith("explain") else _READERS.search(text))


def reads_no_rows(statement: exp.Expr) -> bool:
    """Whether a statement without a query changes or describes tables, and reads nothing of their rows."""
    if isinstance(statement, exp.Analyze):
        return statement.find(exp.Column) is None
    return isinstance(statement, _READ_NO_ROWS)


def tables_read(statement: exp.Expr) -> list[exp.Table]:
    """The tables in a statement, each as often as it occurs, without that which it only writes."""
    args = statement.args
    is_writer = (
        isinstance(statement, exp.Insert)
        or (isinstance(statement, exp.Create) and args.get("kind") != "INDEX")
        or (isinstance(statement, exp.Delete) and not args.get("where") and not args.get("returning"))
        or (isinstance(statement, exp.Copy) and args.get("kind"))  # ``copy ... from``
    )
    target = statement.this.find(exp.Table) if is_writer else None
    tables = statement.find_all(exp.Table)
    return [each for each in tables if each is not target and not isinstance(each.parent, exp.JoinHint)]


def has_unknown_reads(
    query: exp.Query, scopes: Sequence[Scope], is_table: Callable[[exp.Table], bool], occurrences: int
) -> bool:
    """Whether a statement reads a table elsewhere than its scopes say, as below ``pivot`` in ``from``.

    Args:
        query: Of the statement.
        scopes: Of the query.
        is_table: Whether a table is the one in question.
        occurrences: How often `tables_read` has that table.
    """
    found = set()
    for scope in scopes:
        for table in filter(is_table, scope.tables):
            source = scope.sources.get(table.alias_or_name)
            # A common table expression may have the table's name.
            if source is table or (isinstance(source, Scope) and not table.db):
                found.add(id(table))
    pivots = (each for each in query.find_all(exp.Pivot) if each.arg_key == "this")
    return len(found) < occurrences or any(isinstance(each.parent, exp.Subquery) for each in pivots)


def read_columns(scope: Scope) -> Iterator[exp.Column]:
    """The columns that a query reads, also where it could name one of its outputs."""
    yield from scope.columns
    for column in scope.find_all(exp.Column):
        if isinstance(column.find_ancestor(exp.Query, *_AFTER_GROUPS), _AFTER_GROUPS):
            yield column


def aggregated_columns(selected: Iterable[exp.Expr]) -> Iterator[exp.Column]:
    """Those whose least or greatest value or count is returned."""
    for aggregate in (found for each in selected for found in each.find_all(exp.Min, exp.Max, exp.Count)):
        if isinstance(aggregate.this, exp.Column) and not isinstance(aggregate.parent, exp.Window):
            yield aggregate.this
