"""Finds the code that a planted bug changes by its syntax, and leaves the rest of the file as it is.

`before` and `after` are Python: an expression, or statements. Attributes, keywords, operators, constants and the names
of the module and of builtins must be the same; formatting and comments do not matter. Any other name stands for a
local name of the function, the same one throughout. `...` stands for any code: in a body for any number of statements,
among arguments for any number of them (`**...` for keywords), once each; in `after` it is that code again, in order.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_Nodes = list[ast.expr] | list[ast.stmt]
_INDENT = 4
_NO_MEANING = {"ctx", "kind", "type_comment"}
_CHOSEN_NAMES = {ast.Name: "id", ast.arg: "arg"} | dict.fromkeys(
    (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef, ast.AsyncFunctionDef), "name"
)
"""The field of a node that has a name which a function may choose."""


class Moved(ValueError):
    """The code that a bug changes is not there, or not once."""


def planted(source: str, name: str, before: str, after: str) -> str:
    """The source of a module with a bug.

    Args:
        source: Formatted by ruff: four spaces for each level, one statement a line.
        name: Qualified name of the function or class that is changed; empty for the module.
        before: What occurs once in it.
        after: What it becomes.

    Raises:
        Moved: There is no such function or class, `before` does not occur exactly once in it, or `after` has a name
            that nothing there has.
        SyntaxError: One of them is not Python.
    """
    tree = ast.parse(source)
    old, new = ast.parse(before).body, ast.parse(after).body
    patterns: _Nodes = old
    replacement: list[ast.AST] = [*new]
    match old, new:
        case [ast.Expr(value=expression)], [ast.Expr(value=other)]:
            patterns, replacement = [expression], [other]
    module_names = frozenset(dir(builtins)) | _given_names(_outside_functions(tree))
    found = [
        (nodes, bindings)
        for path in _named(tree, name.split(".") if name else [])
        for local_names in [_local_names(path)]
        for nodes in _candidates(path[-1], patterns)
        if (bindings := _Bindings(local_names, module_names)).match(patterns, nodes)
    ]
    if len(found) != 1:
        raise Moved(f"{before!r} occurs {len(found)} times in {name or 'the module'}")
    nodes, bindings = found[0]
    return _replaced(source, nodes, bindings.filled(replacement))


@dataclass
class _Bindings:
    """What the names and the `...` of a pattern stand for."""

    local_names: frozenset[str]
    module_names: frozenset[str]
    names: dict[str, str] = field(default_factory=dict)
    left_out: list[object] = field(default_factory=list)

    def match(self, pattern: object, node: object) -> bool:
        if _is_ellipsis(pattern):
            self.left_out.append(node)
            return True
        if isinstance(pattern, list) and isinstance(node, list):
            return self._match_lists(pattern, node)
        if type(pattern) is not type(node):
            return False
        if not isinstance(pattern, ast.AST):
            return pattern == node
        chosen = _CHOSEN_NAMES.get(type(pattern))
        return all(
            (self._match_names if name == chosen and value else self.match)(value, getattr(node, name, None))
            for name, value in ast.iter_fields(pattern)
            if name not in _NO_MEANING
        )

    def _match_lists(self, patterns: list[object], nodes: list[object]) -> bool:
        start = next((i for i, pattern in enumerate(patterns) if _is_ellipsis(pattern)), None)
        if start is None:
            return len(patterns) == len(nodes) and all(map(self.match, patterns, nodes))
        end = len(nodes) - (len(patterns) - start - 1)
        if end < start or not all(map(self.match, patterns[:start], nodes)):
            return False
        self.left_out.append(nodes[start:end])
        return all(map(self.match, patterns[start + 1 :], nodes[end:]))

    def _match_names(self, pattern: str, name: str | None) -> bool:
        if pattern in self.names:
            return self.names[pattern] == name
        may_differ = name in self.local_names and pattern not in self.module_names
        if name is None or name in self.names.values() or not (pattern == name or may_differ):
            return False
        self.names[pattern] = name
        return True

    def filled(self, replacement: Sequence[ast.AST]) -> list[ast.AST]:
        """Copies of the nodes with what their names and `...` stand for; raises Moved for names that nothing has."""
        parts = [part for node in replacement for part in ast.walk(node)]
        used = {part.id for part in parts if isinstance(part, ast.Name)}
        if unknown := used - self.names.keys() - self.local_names - self.module_names - _given_names(parts):
            raise Moved(f"there is no {', '.join(sorted(unknown))}")
        body = ast.Module([deepcopy(node) for node in replacement], [])  # type: ignore[misc]
        _Filling(self).generic_visit(body)
        return [*body.body]


class _Filling(ast.NodeTransformer):
    def __init__(self, bindings: _Bindings) -> None:
        self._names = bindings.names
        self._left_out = iter(bindings.left_out)

    def visit(self, node: ast.AST) -> object:
        if _is_ellipsis(node):
            return next(self._left_out)
        if chosen := _CHOSEN_NAMES.get(type(node)):
            name = getattr(node, chosen)
            setattr(node, chosen, self._names.get(name, name))
        return self.generic_visit(node)


def _is_ellipsis(node: object) -> bool:
    match node:
        case ast.Expr(value=value) | ast.keyword(arg=None, value=value):
            return _is_ellipsis(value)
        case ast.Constant(value=value):
            return value is ...
    return False


def _named(tree: ast.AST, names: Sequence[str]) -> Iterator[list[ast.AST]]:
    """Each function or class of that qualified name, behind those around it; a property has more than one."""
    if not names:
        yield [tree]
    for node in _outside_functions(tree) if names else ():
        if isinstance(node, _Scope) and node.name == names[0]:
            for inner in _named(node, names[1:]):
                yield [tree, *inner]


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module, class or function, its functions and classes included, but not what is in them."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if not isinstance(node, _Scope):
            yield from _outside_functions(node)


def _local_names(path: Iterable[ast.AST]) -> frozenset[str]:
    functions = [node for node in path if isinstance(node, _Function)]
    return _given_names(part for function in functions for part in ast.walk(function) if part is not function)


def _given_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    names: set[str | None] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=name, asname=alias):
                names.add(alias or name.partition(".")[0])
            case _ if not isinstance(node, ast.Name) and (chosen := _CHOSEN_NAMES.get(type(node))):
                names.add(getattr(node, chosen))
    return frozenset(name for name in names if name)


def _candidates(scope: ast.AST, patterns: _Nodes) -> Iterator[_Nodes]:
    if not isinstance(patterns[0], ast.stmt):
        yield from ([expression] for expression in _expressions(scope))
        return
    bodies = [[scope]] if isinstance(scope, ast.stmt) else []
    bodies += [value for node in ast.walk(scope) for _, value in ast.iter_fields(node) if isinstance(value, list)]
    for body in bodies:
        if body and isinstance(body[0], ast.stmt):
            yield from (body[i : i + len(patterns)] for i in range(len(body) - len(patterns) + 1))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """All but those in f-strings, whose places Python 3.11 does not know."""
    if isinstance(node, ast.expr):
        yield node
    if not isinstance(node, ast.JoinedStr):
        for part in ast.iter_child_nodes(node):
            yield from _expressions(part)


def _replaced(source: str, old: _Nodes, new: Sequence[ast.AST]) -> str:
    text = source.encode()
    lines = text.splitlines(keepends=True)
    first, last = old[0], old[-1]
    line, column = first.lineno, first.col_offset
    for decorator in getattr(first, "decorator_list", [])[:1]:
        line = decorator.lineno
    start = sum(map(len, lines[: line - 1])) + column
    end = sum(map(len, lines[: (last.end_lineno or 0) - 1])) + (last.end_col_offset or 0)
    if isinstance(first, ast.expr):
        code = f"({ast.unparse(new[0])})"
    elif text[start:].startswith(b"elif"):
        code = f"else:\n{' ' * (column + _INDENT)}{_indented(new, column // _INDENT + 1)}"
    else:
        code = _indented(new, column // _INDENT)
    return (text[:start] + code.encode() + text[end:]).decode()


def _indented(statements: Sequence[ast.AST], depth: int) -> str:
    """Code of statements inside as many blocks, without the indent of the first line."""
    body = list(statements)
    for _ in range(depth):
        body = [ast.If(ast.Constant(value=True), body, [])]  # type: ignore[arg-type]
    code = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))  # type: ignore[arg-type]
    return "\n".join(code.splitlines()[depth:]).lstrip()
