"""Which streams of calls are the tasks of a program, and where all tasks wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Union

from reporters.iotrace.calls import CallStream


class AllTasks:
    """Where all tasks wait for each other, as some programs end before others begin."""


ALL_TASKS = AllTasks()
TaskSequence = Sequence[Union[CallStream, AllTasks]]


@dataclass
class _ArrangedTask:
    rank: int
    ended: int = -1
    files: set[int] = field(default_factory=set)
    sequence: list[CallStream | AllTasks] = field(default_factory=list)


def arranged(streams: Sequence[CallStream]) -> list[TaskSequence]:
    """Return the streams of each task, one after another, with ALL_TASKS where all earlier ones have ended.

    The streams of a rank are one task. Other streams that follow one another are one task as well: a stream
    goes to the task that is free and has used most of its files before.
    """
    tasks: list[_ArrangedTask] = []
    latest = -1
    for stream in sorted(streams, key=lambda stream: (stream.began, stream.rank)):
        if latest >= 0 and stream.began >= latest:
            for task in tasks:
                task.sequence.append(ALL_TASKS)
        latest = max(latest, stream.ended)
        task = _task_of(stream, tasks)
        task.sequence.append(stream)
        task.ended = max(task.ended, stream.ended)
        task.files.update(stream.files)
    return [task.sequence for task in sorted(tasks, key=lambda task: (task.rank < 0, task.rank))]


def _task_of(stream: CallStream, tasks: list[_ArrangedTask]) -> _ArrangedTask:
    free = [task for task in tasks if task.ended <= stream.began and task.rank == stream.rank]
    if free:
        return max(free, key=lambda task: len(task.files & stream.files))
    barriers = sum(isinstance(item, AllTasks) for item in tasks[0].sequence) if tasks else 0
    tasks.append(_ArrangedTask(stream.rank, sequence=[ALL_TASKS] * barriers))
    return tasks[-1]


def streams_of(task: TaskSequence) -> Iterator[CallStream]:
    """Yield the streams of *task*."""
    for item in task:
        if isinstance(item, CallStream):
            yield item
