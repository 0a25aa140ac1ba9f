"""Catalogs configured for PyIceberg: ``.pyiceberg.yaml`` and environment variables ``PYICEBERG_CATALOG__...``.

The file is the first one in ``PYICEBERG_HOME``, the home directory and the working directory. Names are converted to
lower case. Variables override the file: ``PYICEBERG_CATALOG__PROD__S3__REGION`` is ``s3.region`` of the catalog
``prod``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from icebench.engine.errors import Invalid
from icebench.engine.lazy_module import LazyModule

if TYPE_CHECKING:
    import yaml

    from icebench.engine.storage import failures
else:  # most users have no such file
    yaml = LazyModule("yaml")
    failures = LazyModule("icebench.engine.storage.failures")

FILE = ".pyiceberg.yaml"
_PREFIX = "pyiceberg_catalog__"


def configured_catalogs(environment: Mapping[str, str] = os.environ) -> dict[str, dict[str, str]]:
    """The properties of each configured catalog; nested ones joined by dots, as in ``ssl.cabundle``.

    Raises:
        Invalid: The file is not such a configuration; the message has no values of it.
        StorageFailed: It cannot be read.
    """
    found = _from_file(environment)
    for variable, value in environment.items():
        lowered = variable.lower()
        name, separator, key = lowered.removeprefix(_PREFIX).partition("__")
        if lowered.startswith(_PREFIX) and separator and value:
            own = found.setdefault(name.replace("_", "-"), {})
            own[key.replace("__", ".").replace("_", "-")] = value
    return found


def catalog_names() -> list[str]:
    """The names of catalogs that are configured, in ``.pyiceberg.yaml`` and variables ``PYICEBERG_CATALOG__NAME__KEY``,
    for `icebench.load_catalog`; sorted.

    Raises:
        Invalid: The file is not such a configuration.
        StorageFailed: It cannot be read.
    """
    return sorted(configured_catalogs())


def _from_file(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    # Where there is no home, pathlib raises and os does not.
    for directory in (environment.get("PYICEBERG_HOME"), os.path.expanduser("~"), Path.cwd()):  # noqa: PTH111
        path = Path(directory) / FILE if directory else None
        if path is not None and path.is_file():
            with failures.translate_errors("read", str(path)):
                text = path.read_text(encoding="utf-8")
            content = _parse(text, path)
            if content:
                break
    else:
        return {}
    catalogs = content.get("catalog", {})
    if not isinstance(catalogs, dict) or not all(isinstance(each, dict) for each in catalogs.values()):
        raise Invalid(f"{path}: 'catalog' does not give each catalog its properties")
    return {name: dict(_flat("", own)) for name, own in catalogs.items()}


def _parse(text: str, path: Path) -> dict[str, object]:
    try:
        # Every value stays a string, as with PyIceberg: no numbers, no booleans.
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        # The error's own text quotes the line, which may have a secret.
        mark = getattr(error, "problem_mark", None)
        raise Invalid(f"{path}{f', line {mark.line + 1}' if mark else ''}: not YAML") from None
    if content and not isinstance(content, dict):
        raise Invalid(f"{path}: not a configuration, whose first level has 'catalog'")
    return _lowered(content or {})


def _lowered(values: Mapping[str, object]) -> dict[str, object]:
    return {str(key).lower(): _lowered(value) if isinstance(value, dict) else value for key, value in values.items()}


def _flat(prefix: str, values: Mapping[str, object]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        found += _flat(f"{prefix}{key}.", value) if isinstance(value, dict) else [(prefix + key, str(value))]
    return found
