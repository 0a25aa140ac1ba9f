"""Which files are rewritten together."""

from __future__ import annotations

from typing import Any

import pytest

from icebench.engine.deletes.files import DeleteFile, FileRead
from icebench.engine.maintenance.file_groups import Selection
from icebench.engine.spec.data_file import FileContent
from icebench.errors import Invalid


def file(name: str, size: int, **more: Any) -> FileRead:
    return FileRead(file_path=name, record_count=100, file_size_in_bytes=size, **more)


def deletes(rows: int, *, own: bool = True, content: FileContent = FileContent.POSITION_DELETES) -> DeleteFile:
    return DeleteFile(
        content=content,
        file_path="d",
        file_format="parquet",
        record_count=rows,
        file_size_in_bytes=10,
        sequence_number=1,
        referenced_data_file="a" if own else None,
    )


def grouped(files: list[FileRead], **options: Any) -> list[list[str]]:
    groups = Selection(target_file_size_bytes=1000, **options).groups(files)
    assert [group.number for group in groups] == list(range(len(groups)))
    return [[each.file_path for each in group.files] for group in groups]


class TestWhichFiles:
    def test_many_small_ones(self) -> None:
        small = [file(f"s{i}", 10) for i in range(5)]
        right = [file("r", 1000)]
        assert grouped(small[:4] + right) == []
        assert grouped(small + right) == [["s0", "s1", "s2", "s3", "s4"]]
        assert grouped(small[:2] + right, min_input_files=2) == [["s0", "s1"]]

    def test_few_that_fill_a_file(self) -> None:
        assert grouped([file("a", 600), file("b", 600)]) == [["a", "b"]]
        assert grouped([file("a", 400), file("b", 600)]) == []

    def test_one_that_is_too_large(self) -> None:
        assert grouped([file("a", 1800)]) == []
        assert grouped([file("a", 1801)]) == [["a"]]

    @pytest.mark.parametrize(("size", "wrong"), [(749, True), (750, False), (1800, False), (1801, True)])
    def test_the_limits_themselves_are_right(self, size: int, wrong: bool) -> None:
        assert grouped([file(f"f{i}", size) for i in range(5)]) == [[f"f{i}" for i in range(5)]] * wrong

    def test_alone_one_is_never_worth_it(self) -> None:
        assert grouped([file("a", 10)], min_input_files=1) == []
        assert grouped([file("a", 10)], rewrite_all=True) == [["a"]]

    def test_many_delete_files(self) -> None:
        files = [file("a", 1000, deletes=(deletes(1), deletes(1)))]
        assert grouped(files) == []
        assert grouped(files, delete_file_threshold=2) == [["a"]]

    @pytest.mark.parametrize(("rows", "own", "found"), [(30, True, [["a"]]), (29, True, []), (90, False, [])])
    def test_many_deleted_rows(self, rows: int, own: bool, found: list[list[str]]) -> None:
        assert grouped([file("a", 1000, deletes=(deletes(rows, own=own),))]) == found

    def test_keys_are_not_rows(self) -> None:
        by_key = deletes(90, own=False, content=FileContent.EQUALITY_DELETES)
        assert grouped([file("a", 1000, deletes=(by_key,))]) == []


class TestTogether:
    def test_by_partition(self) -> None:
        files = [file(f"{p}{i}", 10, partition=(p,)) for i in range(2) for p in ("x", None)]
        groups = Selection(target_file_size_bytes=1000, min_input_files=2).groups(files)
        assert [(g.partition, [f.file_path for f in g.files]) for g in groups] == [
            (("x",), ["x0", "x1"]),
            ((None,), ["None0", "None1"]),
        ]

    def test_other_specs_are_one(self) -> None:
        files = [file("a", 10, spec_id=1, partition=(1,)), file("b", 10, spec_id=2, partition=(2,)), file("c", 10)]
        assert grouped(files, min_input_files=2) == [["a", "b"]]
        assert grouped(files, min_input_files=1, output_spec_id=1) == [["b", "c"]]

    def test_no_group_is_too_large(self) -> None:
        files = [file(f"s{i}", 300) for i in range(7)] + [file("l", 5000)]
        assert grouped(files, max_file_group_size_bytes=700, rewrite_all=True) == [
            ["s0", "s1"],
            ["s2", "s3"],
            ["s4", "s5"],
            ["s6"],
            ["l"],
        ]
        assert grouped(files[:4], max_file_group_size_bytes=600, rewrite_all=True) == [["s0", "s1"], ["s2", "s3"]]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([300], 1400),  # one file, whatever compression does
        ([600, 600], 1000),  # 0.6 of a file more than one: two files of at least 600 would be below the target
        ([500] * 21, 1071),  # 10.5 files: ten of 1050
        ([980, 980], 1000),
    ],
)
def test_new_files_have_about_the_same_size(sizes: list[int], expected: int) -> None:
    files = [file(f"f{i}", size) for i, size in enumerate(sizes)]
    (group,) = Selection(target_file_size_bytes=1000, rewrite_all=True).groups(files)
    assert group.file_size_bytes == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_file_size_bytes": 1000}, "must rise"),
        ({"max_file_size_bytes": 1000}, "must rise"),
        ({"min_input_files": 0}, "min_input_files must be positive"),
        ({"max_file_group_size_bytes": 0}, "max_file_group_size_bytes must be positive"),
        ({"delete_file_threshold": 0}, "delete_file_threshold must be positive"),
        ({"delete_ratio_threshold": 0.0}, "share above 0"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid, match=message):
        Selection(target_file_size_bytes=1000, **options)
