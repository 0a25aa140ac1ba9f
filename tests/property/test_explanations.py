"""Explanations against brute force: they agree with the plan, and no row of a skipped file passes a test they cite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icebench.engine.codec.manifests.reader import decode_columns
from icebench.engine.display import printable
from icebench.engine.expressions.binding import bind
from icebench.engine.expressions.bound import (
    BOUND_FALSE,
    BOUND_TRUE,
    BoundAnd,
    BoundLeaf,
    BoundOr,
    BoundPredicate,
    leaves,
)
from icebench.engine.plan.explanation import NO_FILES, Explained
from icebench.engine.plan.plan_text import NOT_LIVE, funnel
from icebench.engine.plan.scan import table_scan
from icebench.engine.runtime.local import LocalRunner
from icebench.engine.scan import Scan
from tests.property.evaluate import evaluate
from tests.property.filter_strategies import predicates, rows, schemas
from tests.property.table_builder import TableBuilder
from tests.property.test_plan_files import Row, plant, specs


def with_leaves(bound: BoundPredicate, false: frozenset[str]) -> BoundPredicate:
    """The filter with those leaves false, and all others true."""
    match bound:
        case BoundAnd(children):
            return BoundAnd(tuple(with_leaves(child, false) for child in children))
        case BoundOr(children):
            return BoundOr(tuple(with_leaves(child, false) for child in children))
        case BoundLeaf():
            return BOUND_FALSE if str(bound) in false else BOUND_TRUE
    return bound


def check_reasons(bound: BoundPredicate, skipped: Explained, held: Sequence[Row]) -> None:
    tests = {str(leaf): leaf for leaf in leaves(bound)}
    assert set(skipped.tests) <= set(tests)
    assert all(f"not {printable(test)}" in skipped.why for test in skipped.tests)
    assert not any(evaluate(tests[cited], row) for cited in skipped.tests for row in held), skipped.why
    assert evaluate(with_leaves(bound, frozenset(skipped.tests)), {}) is not True, skipped.why


def with_residuals_as_text(files: pa.Table) -> pa.Table:
    """The order of their dictionary is that in which threads came to them."""
    at = files.schema.get_field_index("residual")
    return files.set_column(at, "residual", files["residual"].cast(pa.string()))


@given(data=st.data())
def test_explanations_agree_with_plans_and_rows(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    builder = TableBuilder(schema, data.draw(specs(schema)))
    planted = plant(data.draw, builder, data.draw(st.lists(rows(schema), min_size=1, max_size=6)))
    predicate = data.draw(predicates(schema))
    bound = bind(predicate, schema)
    scan = table_scan(builder.metadata(), builder.store, filter=predicate, runner=LocalRunner(2))
    plan, explanation = scan.plan(), Scan(scan).explain()
    assert with_residuals_as_text(explanation.plan.files).equals(with_residuals_as_text(plan.files))
    assert explanation.plan.counters == plan.counters

    kept = [each for each in explanation.files if each.is_planned]
    assert [each.path for each in kept] == plan.files["file_path"].to_pylist()
    live = {p.entry.data_file.file_path: p for p in planted if p.live}
    manifest_of = {path: m for m, paths in _files_of(builder).items() for path in paths}
    read = {each.path for each in explanation.manifests if each.is_planned}
    assert sorted(each.path for each in explanation.files) == sorted(p for p in live if manifest_of[p] in read)

    skipped_by = Counter(each.skipped_by for each in (*explanation.manifests, *explanation.files) if each.skipped_by)
    counted: Counter[str] = Counter()
    for stage in funnel(plan.counters):
        counted.update({by: count for by, count in stage.pruned.items() if by != NOT_LIVE})
    assert skipped_by == counted
    for file in explanation.files:
        if not file.is_planned:
            check_reasons(bound, file, live[file.path].rows)
    for manifest in explanation.manifests:
        held = [row for path, p in live.items() if manifest_of[path] == manifest.path for row in p.rows]
        assert manifest.why != NO_FILES or not held
        if not manifest.is_planned and manifest.why != NO_FILES:
            check_reasons(bound, manifest, held)
    for text in (repr(explanation), explanation._repr_html_()):
        assert text


def _files_of(builder: TableBuilder) -> dict[str, list[str]]:
    """Manifest -> its files, in the order in which `plant` wrote them."""

    found = {}
    for manifest in builder.manifests:
        columns = decode_columns(builder.store.read(manifest.manifest_path), location="", metrics=frozenset())
        found[manifest.manifest_path] = [each.decode() for each in columns["file_path"].to_pylist()]
    return found
