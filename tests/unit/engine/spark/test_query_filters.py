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


def test_columns_that_are_joined_both_ways() -> None:
    found = [JoinedColumn(2, "a", 4, "b"), JoinedColumn(4, "b", 2, "a")]
    assert columns(join("Inner", A, B), project(C, A), relation(A, C), other("Filter", 1), relation(B)) == found
    assert columns(join("LeftSemi", A, B), other("Filter", 1), relation(A), other("Filter", 1), relation(B)) == found
    assert columns(join("LeftOuter", A, B), other("Filter", 1), relation(A), other("Filter", 1), relation(B)) == []


def test_nodes_between_that_forbid_it() -> None:
    for kind in ("GlobalLimit", "Window", "Aggregate", "Sample", "Generate"):
        assert columns(join("Inner", A, B), other(kind, 1), relation(A), relation(B)) == []
    assert columns(join("Inner", A, B), relation(A), other("Union", 2), relation(B), relation(C)) == []
    alias = {"class": f"{EXPRESSIONS}Alias", "num-children": 1, "name": "a", "exprId": {"id": 1}}
    assert columns(join("Inner", A, B), project(alias), relation(A), relation(B)) == []


def test_an_attribute_of_two_relations_is_of_none() -> None:
    assert columns(join("Inner", A, B), join("Inner", A, C), relation(A), relation(C), relation(B, C)) == [
        JoinedColumn(2, "a", 4, "b"),
        JoinedColumn(4, "b", 2, "a"),
    ]
