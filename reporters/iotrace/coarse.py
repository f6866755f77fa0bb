"""Sum up calls that cannot be folded: the same numbers, bytes and ranges, in another order."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reporters.iotrace.calls import MOVING
from reporters.iotrace.folding import CallShape, FoldedNode, Folder, Leaf, leaves

_MOST_GROUPS = 64


@dataclass
class _CallGroup:
    """Calls with one operation on one file. *target* is the slot of its new name, of renames."""

    call: CallShape
    slot: int
    target: int
    executions: int = 0
    bytes: int = 0
    low: int = 1 << 62
    high: int = 0
    align: int = 0
    think: float = 0.0
    end: int = -1  # of the last call, while they are sequential
    is_sequential: bool = True

    def add(self, leaf: Leaf) -> None:
        self.executions += leaf.executions
        self.think += leaf.think * leaf.executions
        if leaf.call.operation not in MOVING:
            return
        self.bytes += leaf.call.size * leaf.executions
        if leaf.call.where == "random":
            low, high = leaf.call.low, leaf.call.high
            self.align = math.gcd(self.align, leaf.call.align)
        else:
            reach = [step * (times - 1) for times, _, step in leaf.loops]
            low = leaf.offset + sum(min(part, 0) for part in reach)
            high = leaf.offset + sum(max(part, 0) for part in reach)
            self.align = math.gcd(self.align, leaf.offset, *(step for _, _, step in leaf.loops))
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._follow(leaf, high)

    def _follow(self, leaf: Leaf, high: int) -> None:
        sizes = [leaf.call.size]
        for times, _, step in reversed(leaf.loops):
            if times > 1 and step != sizes[-1]:
                self.is_sequential = False
            sizes.append(sizes[-1] * times)
        starts_here = leaf.call.where == "next" or self.end in (-1, leaf.offset)
        self.is_sequential = self.is_sequential and starts_here and leaf.call.where != "random"
        self.end = high + leaf.call.size

    def shape(self) -> CallShape:
        if self.call.operation not in MOVING:
            return self.call
        size = max(round(self.bytes / self.executions), 1) if self.bytes else 0
        if self.is_sequential:
            return CallShape(self.call.operation, size, where="next")
        return CallShape(
            self.call.operation, size, where="random", low=self.low, high=self.high, align=max(self.align, 1)
        )


def coarse(folder: Folder, nodes: list[FoldedNode]) -> list[FoldedNode]:
    """Return fewer nodes for *nodes*: the calls between two barriers by operation and file, mixed evenly."""
    summed = Folder(folder.shapes)
    part: list[Leaf] = []
    for node in nodes:
        for leaf in leaves(node):
            if leaf.call.operation == "barrier" and not leaf.loops:
                _sum_up(summed, part)
                part = []
                summed.push(leaf.call, 0, 0, 0.0)
            else:
                part.append(leaf)
    _sum_up(summed, part)
    return summed.nodes


def _sum_up(folder: Folder, part: list[Leaf]) -> None:
    groups: dict[tuple[str, int, int], _CallGroup] = {}
    for leaf in part:
        target = leaf.offset if leaf.call.operation == "rename" else 0
        key = (leaf.call.operation, leaf.slot, target)
        if key not in groups and len(groups) >= _MOST_GROUPS:
            key = next((known for known in groups if known[0] == key[0]), key)
        groups.setdefault(key, _CallGroup(leaf.call, leaf.slot, target)).add(leaf)
    rounds = min((group.executions for group in groups.values()), default=0)
    if rounds:
        body = [folder.repeated(*_repeats(group, group.executions // rounds)) for group in groups.values()]
        folder.append_loop(body, rounds)
    for group in groups.values():
        rest = group.executions - rounds * (group.executions // rounds)
        if rest:
            folder.append_loop([folder.repeated(*_repeats(group, rest))], 1)


def _repeats(group: _CallGroup, times: int) -> tuple[CallShape, tuple[int, int], float, int]:
    return group.shape(), (group.slot, group.target), group.think / group.executions, times
