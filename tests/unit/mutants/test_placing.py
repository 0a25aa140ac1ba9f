"""Where a planted bug goes: found by syntax, whatever the formatting and the names of locals; nothing else changes."""

import ast
from textwrap import dedent

import pytest

from tests.mutants.placing import Moved, planted

SOURCE = '''
from kinds import NULL, NAN

_LIMIT = 1 << 20


def other(low, high):
    return low < high


class Ranges:
    """Ranges."""

    _LIMIT = 3

    @property
    def count(self):
        """How many.

        Two lines."""
        return len(self._low) + 1

    @count.setter
    def count(self, value):
        self._low = [0] * value

    def meet(self, low, high, *, strict=False):
        # A comment.
        found = [x for x in low if x.kind | NULL]
        total = len(found)
        for each in high:
            if each > total:
                self.log(f"{each > total}", each, level=3, strict=strict)
                continue
            elif each == NAN:
                total = total + 1
        é = "é"; return (total, é) if strict else (
            low,  # kept
            high,
        )
'''


def changed(name: str, before: str, after: str, source: str = SOURCE) -> list[str]:
    """The lines that the bug takes away and those that it brings; what it yields is Python."""
    bug = planted(source, name, before, after)
    ast.parse(bug)
    old, new = source.splitlines(), bug.splitlines()
    return [f"-{line.strip()}" for line in old if line not in new] + [
        f"+{line.strip()}" for line in new if line not in old
    ]


@pytest.mark.parametrize(
    ("name", "before", "after", "difference"),
    [
        ("other", "low < high", "low <= high", ["-return low < high", "+return (low <= high)"]),
        ("", "_LIMIT = 1 << 20", "_LIMIT = 0", ["-_LIMIT = 1 << 20", "+_LIMIT = 0"]),
        ("Ranges", "_LIMIT = 3", "_LIMIT = 4", ["-_LIMIT = 3", "+_LIMIT = 4"]),
        ("Ranges.meet", "total = len(found)", "pass", ["-total = len(found)", "+pass"]),
        ("Ranges.meet", "False", "True", [
            "-def meet(self, low, high, *, strict=False):", "+def meet(self, low, high, *, strict=(True)):",
        ]),
        ("Ranges.count", "len(self._low) + 1", "0", ["-return len(self._low) + 1", "+return (0)"]),
        ("Ranges.meet", "continue", "break", ["-continue", "+break"]),
        ("Ranges.meet", "total = len(found)", "total = 0\nlow = high", [
            "-total = len(found)", "+total = 0", "+low = high",
        ]),
        ("Ranges.meet", "found = ...\ntotal = len(found)", "total = 0", [
            "-found = [x for x in low if x.kind | NULL]", "-total = len(found)", "+total = 0",
        ]),
    ],
)  # fmt: skip
def test_a_bug_changes_the_named_function_and_nothing_else(name, before, after, difference):
    assert changed(name, before, after) == difference


@pytest.mark.parametrize(
    "before",
    ["x.kind | NULL", "whatever.kind | NULL", "x . kind|(NULL)  # comment", "found = [x for x in low if x.kind | NULL]",
     "a = [b for b in c if b.kind | NULL]"],
)  # fmt: skip
def test_names_of_locals_formatting_and_comments_do_not_matter(before):
    assert "x.kind | NAN" in planted(SOURCE, "Ranges.meet", before, before.replace("NULL", "NAN").partition("#")[0])


def test_the_code_may_rename_its_locals_and_be_formatted_anew():
    source = (
        SOURCE.replace("each", "value").replace("total", "number").replace("value > number:", "( value>\n number):")
    )
    assert "(value >= number)" in planted(source, "Ranges.meet", "each > total", "each >= total")


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("Ranges.meet", "each < total"),
        ("Ranges.meet", "each > each"),
        ("Ranges.meet", "each.kind | NAN"),
        ("Ranges.meet", "x.sort | NULL"),
        ("Ranges.meet", "self.log(..., level=4, strict=strict)"),
        ("Ranges.meet", "total = len(found) + 1"),
        ("Ranges.gone", "total = len(found)"),
        ("Gone.meet", "total = len(found)"),
        ("meet", "total = len(found)"),
        ("Ranges.meet", "total + True"),
        ("Ranges.meet", "each > NULL"),
        ("Ranges.meet", "total = 0\nlow = high"),
    ],
)
def test_code_that_is_not_there_is_moved(name, before):
    with pytest.raises(Moved, match=r"occurs 0 times"):
        planted(SOURCE, name, before, "pass")


@pytest.mark.parametrize(("before", "times"), [("low", "many"), ("a = b", 0), ("return ...", 1), ("each", "many")])
def test_code_that_is_there_more_than_once_is_moved(before, times):
    if times == 1:
        assert planted(SOURCE, "Ranges.meet", before, "return")
    else:
        with pytest.raises(Moved):
            planted(SOURCE, "Ranges.meet", before, "pass")


def test_two_names_of_a_pattern_are_two_names_of_the_code():
    source = "def f(a, b):\n    return a - a, a - b\n"
    assert planted(source, "f", "x - y", "y - x") == "def f(a, b):\n    return a - a, (b - a)\n"
    assert planted(source, "f", "x - x", "0") == "def f(a, b):\n    return (0), a - b\n"


def test_a_global_is_no_local_of_another_name():
    source = "SIZE = 1\ndef f(a):\n    return SIZE - a\n"
    with pytest.raises(Moved):
        planted(source, "f", "b - a", "a")
    assert "return (a)" in planted(source, "f", "SIZE - b", "b")


def test_a_name_that_nothing_has_is_moved_and_not_a_bug_that_any_test_finds():
    with pytest.raises(Moved, match="there is no height"):
        planted(SOURCE, "Ranges.meet", "total = len(found)", "total = height")
    assert "level = 3; " not in planted(SOURCE, "Ranges.meet", "a = len(b)", "level = 3\na = level")


def test_what_is_left_out_stays_with_the_names_of_the_code():
    bug = planted(SOURCE, "Ranges.meet", "for a in high:\n    ...", "for a in list(high)[1:]:\n    ...")
    assert bug.index("for each in list(high)[1:]:") < bug.index("if each > total:") < bug.index("total = total + 1")
    bug = planted(SOURCE, "Ranges.meet", "self.log(..., level=3, **...)", "self.log(..., **...)")
    assert "(self.log(f'{each > total}', each, strict=strict))" in bug
    bug = planted(SOURCE, "Ranges.count", "@property\ndef count(self): ...", "@property\ndef count(this): ...")
    assert '    def count(this):\n        """How many.\n\n        Two lines."""\n        return' in bug


@pytest.mark.parametrize("after", ["pass", "if a == NAN:\n    b = b - 1", "c = 1\nd = 2"])
def test_a_branch_after_others_may_be_replaced(after):
    bug = planted(SOURCE, "Ranges.meet", "if a == NAN:\n    b = b + 1", after)
    ast.parse(bug)
    assert "total + 1" not in bug


def test_a_generator_that_is_the_one_argument_is_replaced_within_its_parentheses():
    source = "def f(rows):\n    return sum(1 for row in rows)\n"
    assert ast.unparse(ast.parse(planted(source, "f", "(1 for x in rows)", "rows"))) == dedent(
        """\
        def f(rows):
            return sum(rows)"""
    )


def test_inner_functions_see_the_names_of_those_around_them():
    source = "def f(a):\n    def g(b):\n        return a.x + b\n    return g\n"
    assert "a.x - b" in planted(source, "f.g", "p.x + q", "p.x - q")
    assert "a.x - b" in planted(source, "f", "p.x + q", "p.x - q")
