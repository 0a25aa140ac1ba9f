"""Plans of Spark as JSON, made by hand: what Spark itself gives is in `tests/spark/test_pruned_files.py`."""

from __future__ import annotations

from collections.abc import Sequence

from icebench.engine.spark.query_filters import RELATION, JoinedColumn, joined_columns

LOGICAL, EXPRESSIONS = "org.apache.spark.sql.catalyst.plans.logical.", "org.apache.spark.sql.catalyst.expressions."


def attribute(name: str, number: int) -> dict[str, object]:
    return {
        "class": f"{EXPRESSIONS}AttributeReference",
        "num-children": 0,
        "name": name,
        "dataType": "long",
        "exprId": {"id": number},
    }


def relation(*attributes: dict[str, object]) -> dict[str, object]:
    return {"class": RELATION, "num-children": 0, "output": [[each] for each in attributes]}


def join(kind: str, one: dict[str, object], two: dict[str, object]) -> dict[str, object]:
    return {
        "class": f"{LOGICAL}Join",
        "num-children": 2,
        "joinType": {"object": f"org.apache.spark.sql.catalyst.plans.{kind}$"},
        "condition": [{"class": f"{EXPRESSIONS}EqualTo", "num-children": 2}, one, two],
    }


def other(kind: str, children: int) -> dict[str, object]:
    return {"class": f"{LOGICAL}{kind}", "num-children": children}


def project(*expressions: dict[str, object]) -> dict[str, object]:
    return {"class": f"{LOGICAL}Project", "num-children": 1, "projectList": [[each] for each in expressions]}


A, B, C = attribute("a", 1), attribute("b", 2), attribute("c", 3)


def columns(*nodes: dict[str, object]) -> Sequence[JoinedColumn]:
    return joined_columns(nodes)


def both(one: tuple[int, str], two: tuple[int, str]) -> Sequence[JoinedColumn]:
    return [JoinedColumn(*one, (two,)), JoinedColumn(*two, (one,))]


def alias(number: int, of: dict[str, object]) -> list[dict[str, object]]:
    return [{"class": f"{EXPRESSIONS}Alias", "num-children": 1, "name": "a", "exprId": {"id": number}}, of]


def union(parts: int) -> dict[str, object]:
    return other("Union", parts)


def test_columns_that_are_joined_both_ways() -> None:
    found = both((2, "a"), (4, "b"))
    assert columns(join("Inner", A, B), project(C, A), relation(A, C), other("Filter", 1), relation(B)) == found
    assert columns(join("LeftSemi", A, B), other("Filter", 1), relation(A), other("Filter", 1), relation(B)) == found
    assert columns(join("LeftOuter", A, B), other("Filter", 1), relation(A), other("Filter", 1), relation(B)) == []


def test_nodes_between_that_forbid_it() -> None:
    for kind in ("GlobalLimit", "Window", "Aggregate", "Sample", "Generate"):
        assert columns(join("Inner", A, B), other(kind, 1), relation(A), relation(B)) == []
    computed = project()
    computed["projectList"] = [alias(1, {"class": f"{EXPRESSIONS}Add", "num-children": 2})]
    assert columns(join("Inner", A, B), computed, relation(A), relation(B)) == []


def test_another_name_of_a_column() -> None:
    renamed = project()
    renamed["projectList"] = [alias(1, C)]
    assert columns(join("Inner", A, B), renamed, relation(C), relation(B)) == both((2, "c"), (3, "b"))


def test_an_attribute_of_both_sides_of_a_join_is_of_none() -> None:
    nodes = join("Inner", A, C), relation(A), relation(C), relation(B, C)
    assert columns(join("Inner", A, B), *nodes) == [*both((2, "a"), (4, "b")), *both((2, "a"), (3, "c"))]
    nodes = join("Cross", A, C), relation(A), relation(A, C), relation(B)
    assert columns(join("Inner", A, B), *nodes) == []


def test_a_join_that_gives_one_side_alone() -> None:
    # The last raises where a row has two partners.
    cases = [("LeftAnti", []), ("LeftOuter", both((3, "a"), (4, "b"))), ("LeftSingle", [])]
    for kind, found in cases:
        assert columns(join("Inner", A, B), join(kind, C, A), relation(C), relation(A), relation(B)) == found


def test_parts_of_a_union_have_its_columns_by_place() -> None:
    d, e = attribute("d", 4), attribute("e", 5)
    nodes = join("Inner", A, B), union(2), relation(C, A), project(d, e), relation(e, d), relation(B)
    assert columns(*nodes) == [
        JoinedColumn(2, "a", ((5, "b"),)),
        JoinedColumn(4, "e", ((5, "b"),)),
        JoinedColumn(5, "b", ((2, "a"), (4, "e"))),
    ]


def test_a_part_of_a_union_that_is_one_side_of_a_join() -> None:
    anti = join("LeftAnti", C, C)
    nodes = join("Inner", A, B), union(2), relation(A), anti, relation(C), other("LocalRelation", 0), relation(B)
    assert columns(*nodes)[0] == JoinedColumn(2, "a", ((6, "b"),))
    assert columns(*nodes)[2] == JoinedColumn(6, "b", ((2, "a"), (4, "c")))


def test_a_union_with_rows_of_elsewhere_says_nothing_of_its_partners() -> None:
    for rest in ([other("Range", 0)], [other("GlobalLimit", 1), relation(C)], [project(C), other("Range", 0)]):
        nodes = join("Inner", A, B), union(2), relation(A), *rest
        last = len(nodes)
        assert columns(*nodes, relation(B)) == [JoinedColumn(2, "a", ((last, "b"),))]
