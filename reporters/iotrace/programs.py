"""The programs of a signature: tasks that do the same, apart from places that advance from task to task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from reporters.iotrace.coarse import coarse
from reporters.iotrace.files import TracedFile, TracedFiles
from reporters.iotrace.folding import Folder, Leaf, instructions, leaves


class Programs:
    """The folded tasks of a trace."""

    def __init__(self, files: TracedFiles) -> None:
        self._files = files
        self._tasks: list[tuple[list[int], Folder]] = []

    def add(self, slots: list[int], folder: Folder) -> None:
        """Add a task, whose files are *slots*, in the order of their first use."""
        self._tasks.append((slots, folder))

    def make_coarse(self) -> None:
        """Sum up the calls of each task between two barriers."""
        for _, folder in self._tasks:
            folder.nodes = coarse(folder, folder.nodes)

    def approximated(self) -> float:
        """Return the share of calls whose places are not exact."""
        calls = rough = 0
        for _, folder in self._tasks:
            for node in folder.nodes:
                for leaf in leaves(node):
                    calls += leaf.executions
                    rough += leaf.executions * (leaf.call.where != "")
        return round(rough / calls, 6) if calls else 0.0

    def families(self) -> list[dict[str, Any]]:
        """Return runs of equal files, in the order of their numbers."""
        families: list[dict[str, Any]] = []
        for identity in self._numbers():
            file = self._files.files.get(identity, TracedFile(0))
            values = {
                "initial_bytes": file.initial_bytes,
                "final_bytes": file.final_bytes,
                "cached": round(file.cached, 4),
                "direct": file.is_direct,
                "tasks": len(file.tasks),
            }
            if families and {**families[-1], **values} == families[-1]:
                families[-1]["count"] += 1
            else:
                families.append({"name": f"f{len(families)}", "count": 1, **values})
        return families

    def _numbers(self) -> dict[int, int]:
        """Number the files so that those of neighbouring tasks follow each other."""
        numbers: dict[int, int] = {}
        for place in range(max(len(slots) for slots, _ in self._tasks)):
            for slots, _ in self._tasks:
                if place < len(slots):
                    numbers.setdefault(slots[place], len(numbers))
        return numbers

    def written(self) -> list[dict[str, Any]]:
        """Return the programs, as the signature has them."""
        numbers = self._numbers()
        tasks = [
            _FoldedTask([numbers[identity] for identity in slots], [leaves(node) for node in folder.nodes])
            for slots, folder in self._tasks
        ]
        programs = []
        first = 0
        while first < len(tasks):
            count = _alike(
                tasks[first:], [[node.shape for node in folder.nodes] for _, folder in self._tasks[first:]]
            )
            programs.append(self._program(first, tasks[first : first + count]))
            first += count
        return programs

    def _program(self, first: int, tasks: Sequence[_FoldedTask]) -> dict[str, Any]:
        files = [
            [number, tasks[1].files[slot] - number if len(tasks) > 1 else 0]
            for slot, number in enumerate(tasks[0].files)
        ]
        described = _described(tasks)
        body = [instructions(node, described) for node in self._tasks[first][1].nodes]
        return {"tasks": [first, len(tasks)], "files": _runs(files), "body": body}


class _FoldedTask:
    """A task: the numbers of its files, and its calls."""

    def __init__(self, files: list[int], nodes: list[list[Leaf]]) -> None:
        self.files = files
        self.calls = [leaf for node in nodes for leaf in node]
        self.slots = [leaf.slot for leaf in self.calls]
        self.slots += [leaf.offset for leaf in self.calls if leaf.call.operation == "rename"]
        self.places = [*files, *(leaf.offset for leaf in self.calls)]


def _alike(tasks: Sequence[_FoldedTask], shapes: Sequence[list[int]]) -> int:
    """Return how many tasks, from the first on, are one program: equal shapes, and equal steps."""
    count, steps = 1, None
    while (
        count < len(tasks) and shapes[count] == shapes[0] and len(tasks[count].files) == len(tasks[0].files)
    ):
        between = [new - old for new, old in zip(tasks[count].places, tasks[count - 1].places)]
        if steps is not None and between != steps:
            break
        if tasks[count].slots != tasks[0].slots:
            break  # they use their files in another order
        steps = between
        count += 1
    return count


def _described(tasks: Sequence[_FoldedTask]) -> Iterator[dict[str, object]]:
    """Yield the calls of a program."""
    for number, leaf in enumerate(tasks[0].calls):
        if leaf.call.operation == "barrier":
            yield {"op": "barrier"}
            continue
        think = sum(task.calls[number].think for task in tasks) / len(tasks)
        by_task = tasks[1].calls[number].offset - leaf.offset if len(tasks) > 1 else 0
        yield _instruction(leaf, think, by_task)


def _instruction(leaf: Leaf, think: float, by_task: int) -> dict[str, object]:
    call = leaf.call
    slots = [step for _, step, _ in leaf.loops]
    offsets = [step for _, _, step in leaf.loops]
    written: dict[str, object] = {
        "op": call.operation,
        "file": [leaf.slot, *slots] if any(slots) else leaf.slot,
    }
    optional = {"size": call.size, "flags": call.flags, "think": round(think, 7), "by_task": by_task}
    written.update({name: value for name, value in optional.items() if value})
    if call.operation == "rename":
        written["to"] = [leaf.offset, *offsets] if any(offsets) else leaf.offset
    elif call.where == "next":
        written["at"] = "next"
    elif call.where:
        written["at"] = {"random": [call.low, call.high, call.align]}
    elif leaf.offset or any(offsets):
        written["at"] = [leaf.offset, *offsets]
    return written


def _runs(files: list[list[int]]) -> list[list[int]]:
    """Join slots whose files advance by equal steps: [file, step by task, slots, step by slot]."""
    runs: list[list[int]] = []
    for number, by_task in files:
        if runs:
            first, step, count, stride = runs[-1]
            wanted = number - first if count == 1 else stride
            if step == by_task and number == first + count * wanted:
                runs[-1] = [first, step, count + 1, wanted]
                continue
        runs.append([number, by_task, 1, 0])
    return runs
