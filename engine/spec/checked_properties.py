"""Checks of table properties, before they are set and after others have set them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from icebench.engine.errors import Invalid
from icebench.engine.spec import properties as known
from icebench.engine.spec.locations import is_relative
from icebench.engine.spec.name_mapping import parse_name_mapping
from icebench.engine.spec.properties import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    INDEX_OF_COLUMN,
    METADATA_PATH,
    NAME_MAPPING,
    OBJECT_STORAGE_PATH,
    WRITE_PREFIX,
    Property,
)

_KNOWN: dict[str, Property[Any]] = {
    each.name: each for each in vars(known).values() if isinstance(each, Property) and each.owner == "table"
}
_LOCATIONS = (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH)
_OF_FORMATS = tuple(f"{WRITE_PREFIX}{name}." for name in ("parquet", "orc", "avro"))


def check_table_properties(properties: Mapping[str, str]) -> None:
    """Raise Invalid for the first property that the engine reads and whose text is no such value.

    Those of a file format are left to its writer: other engines know more codecs.
    """
    for name in properties:
        if name in _KNOWN and not name.startswith(_OF_FORMATS):
            _KNOWN[name].of(properties)
    INDEX_OF_COLUMN.by_column(properties)
    for each in _LOCATIONS:
        location = each.of(properties)
        if location is not None and is_relative(location):
            raise Invalid(f"table property {each.name}={location!r}: is neither an absolute path nor a URI")
    if (mapping := NAME_MAPPING.of(properties)) is not None:
        parse_name_mapping(mapping)


def valid_table_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties without those that `check_table_properties` refuses."""
    valid = {}
    for name, text in properties.items():
        with suppress(Invalid):
            check_table_properties({name: text})
            valid[name] = text
    return valid
