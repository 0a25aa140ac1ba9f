"""Table properties and counters: declared in one place, and none declared that nothing reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from icebench.engine.runtime import counters
from icebench.engine.spec import properties
from tests.tidy.source import Module, in_tree, project_modules

PROPERTIES = "engine/spec/properties.py"
COUNTERS = "engine/runtime/counters.py"
_PROPERTY_NAME = re.compile(r"(?:commit|gc|history|icebench\.commit|read|write)(?:\.[a-z][a-z-]*)+\.?")


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return [module for module in project_modules() if module.path.startswith("engine/")]


def declared(path: str) -> list[str]:
    """The full names of the constants of a module that are properties or counters."""
    module = properties if path == PROPERTIES else counters
    kinds = (properties.Property, properties.ColumnProperty, str)
    return [
        f"{in_tree(module.__name__)}.{name}"
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, kinds)
    ]


def unread(path: str, modules: list[Module]) -> Iterator[str]:
    read = {reference.name for module in modules if module.path != path for reference in module.references}
    for name in declared(path):
        if not any(each == name or each.startswith(f"{name}.") for each in read):
            yield name


@pytest.mark.parametrize("path", [PROPERTIES, COUNTERS])
def test_each_declared_name_is_read(path: str, modules: list[Module]) -> None:
    assert len(declared(path)) > 20
    assert not list(unread(path, modules))


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("from icebench.engine.spec.properties import GC_ENABLED", False),
        ("from icebench.engine.spec.properties import GC_ENABLED\nGC_ENABLED.of({})", True),
        ("from icebench.engine.spec import properties\nproperties.GC_ENABLED.of({})", True),
    ],
)
def test_an_import_alone_reads_nothing(text: str, is_read: bool) -> None:
    found = list(unread(PROPERTIES, [Module("engine/x.py", text)]))
    assert ("engine.spec.properties.GC_ENABLED" not in found) == is_read


def test_names_of_properties_are_spelled_where_they_are_declared(modules: list[Module]) -> None:
    spelled = [
        f"{module.path}: {node.value}"
        for module in modules
        if module.path != PROPERTIES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _PROPERTY_NAME.fullmatch(node.value)
    ]
    assert not spelled
