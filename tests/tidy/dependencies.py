"""Checks on imports: rows and arrows, libraries by room, cycles, imports inside functions."""

import graphlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.rules import (
    BENCH_ARROWS,
    BENCH_MAY_USE_OF_ENGINE,
    ENGINE_LIBRARIES,
    ENGINE_ROWS,
    IMPURE,
    LIBRARY_HOMES,
    PURE_ROOMS,
)
from tests.tidy.source import REPOSITORY, Finding, Import, Module

OWN_PACKAGES = ("engine", "bench", "tests", "icebench")
BENCH_TO_ENGINE = (("bench", "icebench"), ("bench", "engine"))
LOCAL_IMPORT_MARK = "# local import: "


def is_within(name: str, parents: Iterable[str]) -> bool:
    """Whether the dotted `name` is one of `parents` or below one; of a parent that ends with a dot, only below."""
    return any(name == parent or name.startswith(f"{parent.rstrip('.')}.") for parent in parents)


def reachable(room: str) -> set[str]:
    """The rooms of bench that `room` may import."""
    found: set[str] = set()
    waiting = [*BENCH_ARROWS[room]]
    while waiting:
        if (arrow := waiting.pop()) not in found:
            found.add(arrow)
            waiting += BENCH_ARROWS[arrow]
    return found


def rooms(modules: Sequence[Module]) -> Iterator[Finding]:
    """Imports against ENGINE_ROWS and BENCH_ARROWS."""
    row_of = {room: row for row, names in enumerate(ENGINE_ROWS) for room in names}
    allowed = {("engine", room): {lower for lower in row_of if row_of[lower] < row} for room, row in row_of.items()}
    allowed |= {("bench", room): reachable(room) for room in BENCH_ARROWS}
    for module in modules:
        top, room = module.room
        if top not in {"engine", "bench"}:
            continue
        if module.room not in allowed:
            yield Finding(rule="rooms", subject=module.path, detail=f"{top}.{room} has no place in tests/tidy/rules.py")
            continue
        for item in module.imports:
            other_top, _, rest = item.target.partition(".")
            other = rest.partition(".")[0]
            if item.is_text and (other_top, other) not in allowed:
                continue  # the name of a table, perhaps
            # `from icebench.engine import x`: x is a room, or nothing.
            other = other if (other_top, other) in allowed else ""
            if other_top == top and other not in allowed[module.room] | {room}:
                detail = f"{top}.{room} may not know {top}.{other}".replace(". ", " ").rstrip(".")
                yield Finding(rule="rooms", subject=f"{module.path}: {item.target}", detail=detail)
            elif other_top in OWN_PACKAGES and (top, other_top) not in {(top, top), *BENCH_TO_ENGINE}:
                yield Finding(rule="rooms", subject=f"{module.path}: {item.target}", detail=f"{top} may not know it")


def public_engine(modules: Sequence[Module]) -> Iterator[Finding]:
    """bench uses public names of the engine only: those of `icebench`, and open rooms."""
    for module in modules:
        if module.room[0] != "bench":
            continue
        names = {item.target for item in module.imports} | {reference.name for reference in module.references}
        for name in sorted(names):
            if is_within(name, ["engine"]) and not is_public(name):
                yield Finding(
                    rule="public-engine",
                    subject=f"{module.path}: {name}",
                    detail=f"bench may use names of icebench and {', '.join(BENCH_MAY_USE_OF_ENGINE)}",
                )


def is_public(name: str) -> bool:
    """Whether the full name `engine...` lies in a room that is open to all."""
    parts = name.split(".")
    is_open = len(parts) > 1 and parts[1] in BENCH_MAY_USE_OF_ENGINE
    return is_open and not any(part.startswith("_") for part in parts)


def libraries(modules: Sequence[Module]) -> Iterator[Finding]:
    """Third-party imports against ENGINE_LIBRARIES and LIBRARY_HOMES, and the pure rooms against IMPURE."""
    for module in modules:
        top, room = module.room
        for item in module.imports:
            subject = f"{module.path}: {item.target}"
            if is_within(module.name, PURE_ROOMS) and item.package in IMPURE:
                yield Finding(rule="libraries", subject=subject, detail=f"{top}.{room} is pure")
            if item.package in sys.stdlib_module_names or item.package in OWN_PACKAGES:
                continue
            if top == "engine" and item.package not in ENGINE_LIBRARIES.get(room, ()):
                yield Finding(rule="libraries", subject=subject, detail=f"not a library of {top}.{room}")
        names = {item.target for item in module.imports} | {reference.name for reference in module.references}
        for part, homes in LIBRARY_HOMES.items():
            if not module.path.startswith(homes) and any(is_within(name, [part]) for name in names):
                yield Finding(rule="libraries", subject=f"{module.path}: {part}", detail=f"lives in {', '.join(homes)}")


def requirements(pyproject: str) -> list[Requirement]:
    """What pyproject.toml asks for, extras included, but for those that name other extras."""
    project = tomllib.loads(pyproject)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return [r for group in groups for line in group if (r := Requirement(line)).name != project.get("name")]


def declared(modules: Sequence[Module]) -> Iterator[Finding]:
    """Every library that is imported stands in pyproject.toml, not merely comes with another."""
    wanted = requirements((REPOSITORY / "pyproject.toml").read_text())
    names = {canonicalize_name(requirement.name) for requirement in wanted}
    distributions = packages_distributions()
    for module in modules:
        for package in {item.package for item in module.imports}:
            if package in sys.stdlib_module_names or package in OWN_PACKAGES:
                continue
            if not names & {canonicalize_name(name) for name in distributions.get(package, [])}:
                yield Finding(rule="declared", subject=f"{module.path}: {package}", detail="not in pyproject.toml")


def locked(pyproject: str, lock: str) -> Iterator[Finding]:
    """The lock pins what pyproject.toml asks for; without this a fresh machine is the first to notice."""
    pins = {
        canonicalize_name(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", lock, re.MULTILINE)
    }
    for requirement in requirements(pyproject):
        version = pins.get(canonicalize_name(requirement.name))
        if version is None or version not in requirement.specifier:
            detail = f"requirements.lock has {version}: run `make lock`"
            yield Finding(rule="locked", subject=str(requirement), detail=detail)


def cycles(modules: Sequence[Module]) -> Iterator[Finding]:
    """No module imports itself by way of others, wherever in the file the imports stand."""
    names = {module.name for module in modules}
    # Sorted, so that the same cycle is found each time.
    graph = {
        module.name: sorted({name for item in module.imports if (name := loaded(item, names))} - {module.name})
        for module in sorted(modules, key=lambda module: module.name)
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield Finding(rule="cycles", subject=" <- ".join(error.args[1]), detail="import each other")


def loaded(item: Import, names: set[str]) -> str | None:
    """The project's module that an import loads, if it is one: `a.b.c` may be a name of the module `a.b`."""
    if item.target in names:
        return item.target
    source = item.target.rpartition(".")[0]
    return source if source in names else None


def local_imports(modules: Sequence[Module]) -> Iterator[Finding]:
    """Imports stand at the top, unless a comment on the line or above the block of imports says why."""
    for module in modules:
        lines = {item.line for item in module.imports if item.is_local}
        for line in sorted(lines):
            first = line
            while first - 1 in lines:
                first -= 1
            if all(LOCAL_IMPORT_MARK not in module.lines[number - 1] for number in (line, first - 1)):
                yield Finding(
                    rule="local-imports",
                    subject=f"{module.path}: {module.lines[line - 1].strip()}",
                    detail=f"move it to the top, or say why: {LOCAL_IMPORT_MARK}<reason>",
                )
