"""Columns that no table schema has (spec: "Reserved Field IDs").

A projection may ask for the metadata columns; readers compute them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from icebench.engine.errors import Invalid, Unsupported
from icebench.engine.spec.schema import Schema
from icebench.engine.spec.texts import check_text
from icebench.engine.spec.types import BOOLEAN, INT, LONG, STRING, NestedField, StructType

FILE_ID = 2147483646
POS_ID = 2147483645
DELETED_ID = 2147483644
SPEC_ID_ID = 2147483643
PARTITION_ID = 2147483642
DELETE_FILE_PATH_ID = 2147483546
DELETE_POS_ID = 2147483545
CHANGE_TYPE_ID = 2147483543
CHANGE_ORDINAL_ID = 2147483542
COMMIT_SNAPSHOT_ID_ID = 2147483541
ROW_ID_ID = 2147483540
LAST_UPDATED_ID = 2147483539

FILE = NestedField(field_id=FILE_ID, name="_file", type=STRING, required=True)
"""The data file of the row, as the manifest spells it."""
POS = NestedField(field_id=POS_ID, name="_pos", type=LONG, required=True)
"""The row's position in its data file, from 0."""
DELETED = NestedField(field_id=DELETED_ID, name="_deleted", type=BOOLEAN, required=True)
"""Whether the row is deleted; a projection with it keeps deleted rows."""
SPEC_ID = NestedField(field_id=SPEC_ID_ID, name="_spec_id", type=INT, required=True)
"""The partition spec of the row's data file."""
ROW_ID = NestedField(field_id=ROW_ID_ID, name="_row_id", type=LONG)
"""The row's id that survives rewrites (v3 row lineage)."""
LAST_UPDATED = NestedField(field_id=LAST_UPDATED_ID, name="_last_updated_sequence_number", type=LONG)
"""The sequence number of the commit that last changed the row (v3 row lineage)."""

CHANGE_TYPE = NestedField(field_id=CHANGE_TYPE_ID, name="_change_type", type=STRING, required=True)
"""What happened to the row: INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER."""
CHANGE_ORDINAL = NestedField(field_id=CHANGE_ORDINAL_ID, name="_change_ordinal", type=INT, required=True)
"""The place of the change among the snapshots of a changelog, from 0."""
COMMIT_SNAPSHOT_ID = NestedField(field_id=COMMIT_SNAPSHOT_ID_ID, name="_commit_snapshot_id", type=LONG, required=True)
"""The snapshot in which the change happened."""

CHANGE_COLUMNS = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)
"""The columns that a changelog adds to those of the table; only a changelog has them."""

METADATA_COLUMNS: dict[str, NestedField] = {f.name: f for f in (FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED)}

PARTITION_NAME = "_partition"

RESERVED_NAMES = frozenset({*METADATA_COLUMNS, PARTITION_NAME})
"""The names that a projection may ask for beside a table's own; fields within structs may have them."""
LINEAGE_NAMES = frozenset({ROW_ID.name, LAST_UPDATED.name})
"""Those of the columns that rewritten files have in format version 3."""


def check_column_names(names: Iterable[str], reserved: Collection[str] = RESERVED_NAMES) -> None:
    """Refuse names of metadata columns for top-level columns, in any case; raises Invalid.

    Iceberg Java makes such tables and reads none of them. Where the case differs, its copy-on-write updates and deletes
    by ``_File`` find no row and report success.
    """
    for name in names:
        check_text("the name of a column", name)
        if name.lower() in reserved:
            raise Invalid(f"a column can not be called {name!r}, the name of a metadata column; give it another name")


def check_lineage_names(schema: Schema) -> None:
    """Refuse to rewrite rows whose files would have two columns of one name; raises Unsupported."""
    taken = sorted(LINEAGE_NAMES & {f.name for f in schema.fields})
    if taken:
        raise Unsupported(
            f"row ids beside a column {taken[0]!r} of the table, which has the name of a metadata column; "
            "rename the column first"
        )


def partition_column(type_: StructType) -> NestedField:
    """``_partition``: the partition tuple of the row's data file, null where its spec has no such field.

    Args:
        type_: The partition fields of all specs of the table. Their ids may be those of columns too, so that in the
            column they have others, down from the column's own.
    """
    fields = (replace(f, field_id=PARTITION_ID - 1 - place) for place, f in enumerate(type_.fields))
    return NestedField(field_id=PARTITION_ID, name=PARTITION_NAME, type=StructType(tuple(fields)), required=True)


POSITION_DELETES = Schema(
    (
        NestedField(field_id=DELETE_FILE_PATH_ID, name="file_path", type=STRING, required=True),
        NestedField(field_id=DELETE_POS_ID, name="pos", type=LONG, required=True),
    )
)
"""The columns of position-delete files (spec: "Position Delete Files")."""
