"""Copies of local tables in S3."""

from __future__ import annotations

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

from pyarrow import fs

import icebench
from icebench.bench.engines.access import Access


def copied_to(metadata_location: str, target: str, access: Access) -> str:
    """Copy a table of this machine, with all that its metadata file refers to.

    Args:
        metadata_location: Of the table.
        target: The location of the copy.
        access: What opens the files there, by options with PyIceberg's names.

    Returns:
        The metadata file of the copy.

    Raises:
        EngineError: The table cannot be read, or has files outside of its location.
        OSError: The store refuses.
    """
    source, options = icebench.load_table(metadata_location), access.in_pyiceberg_names
    store = fs.S3FileSystem(
        endpoint_override=options["s3.endpoint"],
        region=options["s3.region"],
        access_key=options["s3.access-key-id"],
        secret_key=options["s3.secret-access-key"],
    )
    with TemporaryDirectory() as folder:
        staged = source.maintenance.rewrite_table_path(source.location, target, staging_location=f"{folder}/staged")
        assert staged.file_list_location is not None
        with Path(staged.file_list_location).open(encoding="utf-8", newline="") as listed:
            for from_, to in csv.reader(listed):
                with store.open_output_stream(to.removeprefix("s3://")) as copy:
                    copy.write(Path(from_.removeprefix("file://")).read_bytes())
    return f"{target}/metadata/{staged.latest_version}"
