"""Folding calls into loops: exact, small for regular programs, and summed up where it must be."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from reporters.iotrace.coarse import coarse
from reporters.iotrace.folding import CallShape, FoldedNode, Folder, leaves

Call = tuple[CallShape, int, int]
READ, WRITE, BARRIER = CallShape("read", 8), CallShape("write", 8), CallShape("barrier")


def folded(calls: list[Call], think: float = 0.0) -> Folder:
    folder = Folder({})
    for call, slot, offset in calls:
        folder.push(call, slot, offset, think)
    return folder


def unfolded(node: FoldedNode, places: list[int]) -> Iterator[Call]:
    """Yield the calls as a replay makes them."""
    if node.call is not None:
        yield node.call, places[0], places[1]
        return
    for iteration in range(node.times):
        moved = [place + iteration * step for place, step in zip(places, node.steps, strict=True)]
        for part in node.body:
            own, moved = moved[: len(part.places)], moved[len(part.places) :]
            yield from unfolded(part, own)


def all_unfolded(nodes: list[FoldedNode]) -> list[Call]:
    return [call for node in nodes for call in unfolded(node, node.places)]


CALLS = st.tuples(st.sampled_from([READ, WRITE]), st.integers(0, 1), st.integers(0, 3).map(lambda n: 8 * n))
PATTERNS = st.lists(
    st.tuples(st.lists(CALLS, min_size=1, max_size=4), st.integers(1, 6), st.sampled_from([0, 8, -8])),
    max_size=6,
)


@given(PATTERNS)
def test_what_is_folded_unfolds_to_the_same_calls(
    patterns: list[tuple[list[Call], int, int]],
) -> None:
    calls = [
        (call, slot, offset + step * iteration)
        for body, times, step in patterns
        for iteration in range(times)
        for call, slot, offset in body
    ]
    folder = folded(calls)
    assert all_unfolded(folder.nodes) == calls
    assert sum(node.executions for node in folder.nodes) == len(calls)


def test_nested_loops_over_files_and_offsets_are_one_node() -> None:
    calls = [
        (shape, slot, 1000 * bin_ + 8 * block)
        for slot in range(5)
        for bin_ in range(7)
        for block in range(9)
        for shape in (READ, WRITE)
    ]
    nodes = folded(calls, think=0.5).nodes
    assert len(nodes) == 1
    leaf = leaves(nodes[0])[1]
    assert leaf.call is WRITE
    assert leaf.loops == ((5, 1, 0), (7, 0, 1000), (9, 0, 8))
    assert leaf.think == 0.5


def test_two_iterations_are_no_loop() -> None:
    assert len(folded([(READ, 0, 0), (READ, 0, 8)]).nodes) == 2


def test_summed_up_calls_keep_numbers_bytes_ranges_and_barriers() -> None:
    offsets = [8 * (number * number % 37) for number in range(30)]
    calls: list[Call] = [(READ, 0, offset) for offset in offsets]
    calls += [(BARRIER, 0, 0)] + [(WRITE, 1, 8 * number) for number in range(10)] + [(READ, 0, 80)] * 5
    folder = folded(calls, think=0.25)
    nodes = coarse(folder, folder.nodes)
    found = [leaf for node in nodes for leaf in leaves(node)]
    assert [leaf.call.operation for leaf in found] == ["read", "barrier", "write", "read"]
    assert [leaf.executions for leaf in found] == [30, 1, 10, 5]
    assert (found[0].call.where, found[0].call.low, found[0].call.high) == ("random", 0, max(offsets))
    assert found[2].call.where == "next"
    assert all(leaf.think == 0.25 for leaf in found if leaf.call is not BARRIER)
