"""Fold a sequence of calls into loops, exactly.

A node is a call or a loop. Each call has two places, the slot of its file and its offset (of a rename: the
slot of its new name); in a loop each place advances by a step of its own at every iteration. A loop begins
when three times the same shape was seen, with equal steps, after F. Mueller's group (M. Noeth and others,
ScalaTrace, 2009).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_LONGEST_BODY = 64


@dataclass(frozen=True)
class CallShape:
    """What two calls have in common that differ only in their places.

    *where* is "" for an offset, "next", or "random" with *low*, *high* and *align*.
    """

    operation: str
    size: int = 0
    flags: int = 0
    where: str = ""
    low: int = 0
    high: int = 0
    align: int = 1


class FoldedNode:
    """A call or a loop. *places* are those of the first iteration, *thinks* sums of seconds over all."""

    __slots__ = ("body", "call", "places", "shape", "steps", "thinks", "times")

    def __init__(self, call: CallShape, places: list[int], think: float, shape: int) -> None:
        self.call: CallShape | None = call
        self.places, self.thinks, self.shape = places, [think], shape
        self.body: list[FoldedNode] = []
        self.steps: list[int] = []
        self.times = 1

    @property
    def executions(self) -> int:
        """How many calls it stands for."""
        return self.times * (sum(node.executions for node in self.body) if self.body else 1)


class Folder:
    """Folds the calls of one task. Folders that share *shapes*, the numbers of shapes, can be compared."""

    def __init__(self, shapes: dict[object, int]) -> None:
        self.nodes: list[FoldedNode] = []
        self.shapes = shapes

    def push(self, call: CallShape, slot: int, offset: int, think: float) -> None:
        self.nodes.append(FoldedNode(call, [slot, offset], think, self._number(call)))
        while self._extend() or self._create():
            pass

    def repeated(self, call: CallShape, places: tuple[int, int], think: float, times: int) -> FoldedNode:
        """Return a node for *times* calls at equal places."""
        node = FoldedNode(call, [*places], think, self._number(call))
        return node if times == 1 else self._loop_of([node], times)

    def append_loop(self, body: list[FoldedNode], times: int) -> None:
        """Append *body*, *times* times, at equal places."""
        self.nodes += body if times == 1 else [self._loop_of(body, times)]

    def _loop_of(self, body: list[FoldedNode], times: int) -> FoldedNode:
        places = _places(body)
        loop = self._loop(body, places, [0] * len(places), [body])
        loop.times = times
        loop.thinks = [think * times for think in _thinks(body)]
        loop.shape = self._loop_shape(loop)
        return loop

    def _number(self, shape: object) -> int:
        return self.shapes.setdefault(shape, len(self.shapes))

    def _extend(self) -> bool:
        """Make the last nodes an iteration of the loop before them, if they are."""
        nodes = self.nodes
        last = nodes[-1]
        for length in range(1, min(_LONGEST_BODY, len(nodes) - 1) + 1):
            loop = nodes[-length - 1]
            if len(loop.body) != length or loop.body[-1].shape != last.shape:
                continue
            if last.places[-1] != loop.places[-1] + loop.times * loop.steps[-1]:
                continue
            iteration = nodes[-length:]
            if any(node.shape != known.shape for node, known in zip(iteration, loop.body)):
                continue
            places = _places(iteration)
            if all(
                place == begin + loop.times * step
                for place, begin, step in zip(places, loop.places, loop.steps)
            ):
                loop.times += 1
                loop.thinks = [known + new for known, new in zip(loop.thinks, _thinks(iteration))]
                loop.shape = self._loop_shape(loop)
                del nodes[-length:]
                return True
        return False

    def _create(self) -> bool:
        """Make the last nodes a loop, if they are three iterations of one."""
        nodes = self.nodes
        last = nodes[-1]
        for length in range(1, min(_LONGEST_BODY, len(nodes) // 3) + 1):
            middle_node, first_node = nodes[-1 - length], nodes[-1 - 2 * length]
            if middle_node.shape != last.shape or first_node.shape != last.shape:
                continue
            if last.places[-1] - middle_node.places[-1] != middle_node.places[-1] - first_node.places[-1]:
                continue
            first, second, third = (
                nodes[-3 * length : -2 * length],
                nodes[-2 * length : -length],
                nodes[-length:],
            )
            if any(a.shape != b.shape or b.shape != c.shape for a, b, c in zip(first, second, third)):
                continue
            begin, middle, end = _places(first), _places(second), _places(third)
            steps = [new - old for new, old in zip(middle, begin)]
            if any(new - old != step for new, old, step in zip(end, middle, steps)):
                continue
            del nodes[-3 * length :]
            nodes.append(self._loop(first, begin, steps, [second, third]))
            return True
        return False

    def _loop(
        self, body: list[FoldedNode], places: list[int], steps: list[int], later: list[list[FoldedNode]]
    ) -> FoldedNode:
        loop = FoldedNode(CallShape(""), places, 0.0, 0)
        loop.call, loop.body, loop.steps, loop.times = None, body, steps, 1 + len(later)
        loop.thinks = [sum(parts) for parts in zip(_thinks(body), *map(_thinks, later))]
        loop.shape = self._loop_shape(loop)
        return loop

    def _loop_shape(self, loop: FoldedNode) -> int:
        return self._number((loop.times, tuple(node.shape for node in loop.body), tuple(loop.steps)))


def _places(nodes: list[FoldedNode]) -> list[int]:
    return nodes[0].places if len(nodes) == 1 else [place for node in nodes for place in node.places]


def _thinks(nodes: list[FoldedNode]) -> list[float]:
    return nodes[0].thinks if len(nodes) == 1 else [think for node in nodes for think in node.thinks]


@dataclass(frozen=True)
class Leaf:
    """A folded call, with its loops from the outermost: times, step of the slot, step of the offset."""

    call: CallShape
    slot: int
    offset: int
    think: float
    loops: tuple[tuple[int, int, int], ...]

    @property
    def executions(self) -> int:
        executions = 1
        for times, _, _ in self.loops:
            executions *= times
        return executions


def leaves(node: FoldedNode) -> list[Leaf]:
    """Return the calls of *node*; *think* is the mean over their executions."""
    loops: list[list[tuple[int, int, int]]] = [[] for _ in node.thinks]
    calls: list[CallShape] = []
    _collect(node, 0, loops, calls)
    found = []
    for number, (call, think) in enumerate(zip(calls, node.thinks)):
        slot, offset = node.places[2 * number : 2 * number + 2]
        leaf = Leaf(call, slot, offset, think, tuple(loops[number]))
        found.append(Leaf(call, slot, offset, think / leaf.executions, leaf.loops))
    return found


def _collect(
    node: FoldedNode, first: int, loops: list[list[tuple[int, int, int]]], calls: list[CallShape]
) -> None:
    if node.call is not None:
        calls.append(node.call)
        return
    for number in range(len(node.thinks)):
        loops[first + number].append((node.times, node.steps[2 * number], node.steps[2 * number + 1]))
    place = first
    for part in node.body:
        _collect(part, place, loops, calls)
        place += len(part.thinks)


def instructions(node: FoldedNode, described: Iterator[dict[str, object]]) -> dict[str, object]:
    """Return *node* as an instruction of a signature; *described* has its calls in order."""
    if node.call is not None:
        return next(described)
    return {"times": node.times, "body": [instructions(part, described) for part in node.body]}
