"""The project's Python files as the checks see them: parsed, with names traced back to what was imported."""

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).parents[2]
_MODULE_NAME = re.compile(r"icebench\.(engine|bench)(\.[a-z_0-9]+)+")
"""A text that is nothing but a module's full name: somebody imports it by that name."""


@dataclass(frozen=True, order=True, kw_only=True)
class Finding:
    """One broken rule. `rule` and `subject` name it for the exemption list, so they hold no line numbers."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"[{self.rule}] {self.subject}: {self.detail}"


@dataclass(frozen=True, kw_only=True)
class Import:
    """One imported name. `from a.b import c` has the target `a.b.c`, whether `c` is a module or not. What lies below
    `icebench.engine` and `icebench.bench` is named without the first part, as the files are.

    A string that names a module counts as an import where it stands: `import_module("a.b")`, `LazyModule("a.b")`.
    """

    target: str
    line: int
    is_local: bool
    is_text: bool = False

    @property
    def package(self) -> str:
        return self.target.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A use of an imported name, of a function of the module, or of a builtin, by its full name.

    A default is one of a parameter or a class field. `source` is the full name of the function without parameters that
    does nothing but return what this name gives (`def now_ms(): return time.time_ns() // 1_000_000`), else "".
    """

    name: str
    line: int
    is_default: bool
    source: str


@dataclass(frozen=True)
class Module:
    """A Python file. `path` is relative to the repository, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def name(self) -> str:
        """The dotted name, for example `icebench.engine.spec.types`."""
        path = PurePosixPath(self.path)
        return ".".join(path.parent.parts if self.is_package else path.with_suffix("").parts)

    @property
    def room(self) -> tuple[str, str]:
        """Top package and what lies below it: ("engine", "spec"), ("engine", "table"); ("engine", "") is `__init__`."""
        top, _, rest = self.name.partition(".")
        return top, rest.partition(".")[0]

    @cached_property
    def imports(self) -> list[Import]:
        local = {
            id(node)
            for function in self.nodes
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        named = [
            Import(target=in_tree(target), line=node.lineno, is_local=id(node) in local)
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for target, _, _ in self._bindings(node)
        ]
        return named + [
            Import(target=in_tree(node.value), line=node.lineno, is_local=False, is_text=True)
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE_NAME.fullmatch(node.value)
        ]

    @cached_property
    def references(self) -> list[Reference]:
        """Every use of such a name, the longest dotted chain once."""
        aliases = self._aliases()
        defaults = _default_nodes(self.nodes)
        sources = {id(node): f"{self.name}.{top.name}" for top in _sources(self.tree) for node in ast.walk(top)}
        inner = {id(node.value) for node in self.nodes if isinstance(node, ast.Attribute)}
        return [
            Reference(
                name=in_tree(name), line=node.lineno, is_default=id(node) in defaults, source=sources.get(id(node), "")
            )
            for node in self.nodes
            if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner
            if (name := _full_name(node, aliases)) is not None
        ]

    def _aliases(self) -> dict[str, str]:
        own = {node.name: f"{self.name}.{node.name}" for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        return own | {
            name: meaning
            for node in self.nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for _, name, meaning in self._bindings(node)
        }

    def _bindings(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
        """What is imported, the name that it binds here, and what that name stands for (`import a.b` binds `a`)."""
        if isinstance(node, ast.Import):
            for item in node.names:
                root = item.name.partition(".")[0]
                yield (item.name, item.asname, item.name) if item.asname else (item.name, root, root)
            return
        source = node.module or ""
        if node.level:
            parents = self.name.split(".")
            parents = parents[: len(parents) - node.level + self.is_package]
            source = ".".join([*parents, source] if source else parents)
        for item in node.names:
            target = f"{source}.{item.name}"
            yield target, item.asname or item.name, target


def in_tree(name: str) -> str:
    """A full name of the project's as its file has it: `engine.spec` for `icebench.engine.spec`."""
    top, _, rest = name.partition(".")
    return rest if top == "icebench" and rest.partition(".")[0] in {"engine", "bench"} else name


def _full_name(node: ast.expr, aliases: dict[str, str]) -> str | None:
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    root = aliases.get(node.id)
    if root is None:
        if attributes or node.id not in {"open", "print", "input", "exec", "eval"}:
            return None
        root = f"builtins.{node.id}"
    return ".".join([root, *reversed(attributes)])


def _default_nodes(nodes: list[ast.AST]) -> set[int]:
    """Ids of all nodes inside the defaults of parameters and of class fields."""
    roots: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.arguments):
            roots += [default for default in (*node.defaults, *node.kw_defaults) if default is not None]
        elif isinstance(node, ast.ClassDef):
            roots += [item.value for item in node.body if isinstance(item, ast.AnnAssign) and item.value is not None]
    return {id(node) for root in roots for node in ast.walk(root)}


def _sources(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not any(ast.iter_child_nodes(node.args)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if [type(statement) for statement in body] == [ast.Return]:
                yield node


def tracked_files(repository: Path = REPOSITORY) -> list[str]:
    """Relative paths of all files that git tracks or would add, and that exist."""
    listing = subprocess.run(
        # In a container the checkout may be another user's.
        ["git", "-c", f"safe.directory={repository}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=repository,
        stdout=subprocess.PIPE,
        check=True,
    )
    paths = sorted(path.decode() for path in listing.stdout.split(b"\0") if path)
    return [path for path in paths if (repository / path).is_file()]


@cache
def project_modules() -> list[Module]:
    """All Python files of the project."""
    return [Module(path, (REPOSITORY / path).read_text()) for path in tracked_files() if path.endswith(".py")]
