from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icebench.bench.gate.decisions.stacks import Frame, Stacks, differences, tree

functions = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)
profiles = st.dictionaries(functions, st.integers(1, 9).map(float)).map(lambda found: list(found.items()))


def walk(frame: Frame, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], float]:
    found = {path: frame.seconds}
    for name, callee in frame.callees.items():
        found |= walk(callee, (*path, name))
    return found


@given(profiles)
def test_a_frame_has_the_seconds_of_all_stacks_that_go_through_it(stacks: Stacks) -> None:
    for path, seconds in walk(tree(stacks)).items():
        assert seconds == sum(own for names, own in stacks if tuple(names[: len(path)]) == path)


@given(profiles, profiles)
def test_the_functions_that_differ_most_come_first(base: Stacks, head: Stacks) -> None:
    def own(stacks: Stacks, name: str) -> float:
        return sum(seconds for names, seconds in stacks if names[-1] == name)

    found = differences(base, head)
    assert {name for name, *_ in found} == {names[-1] for names, _ in [*base, *head]}
    assert all((before, now) == (own(base, name), own(head, name)) for name, before, now in found)
    changes = [abs(now - before) for _, before, now in found]
    assert changes == sorted(changes, reverse=True)
    assert differences(base, head, most=1) == found[:1]
