"""What a workload gives to measurements."""

from enum import Enum


class Gives(Enum):
    """The kinds of subjects that a measurement can name in `suits`; a workload of another package that fits none gives
    `OTHER`."""

    ROWS = "rows, arranged in layouts"
    TABLE = "a table that exists"
    DESCRIBED_FILES = "files that are described and do not exist"
    CELLS = "small tables that differ in one thing each"
    HISTORIES = "a table after batches of changes"
    DATABASE = "tables that queries join"
    WORN_TABLES = "tables that need maintenance"
    OTHER = "something else"
