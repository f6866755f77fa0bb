"""Which streams are the tasks of a program."""

from __future__ import annotations

from reporters.iotrace.calls import CallStream
from reporters.iotrace.tasks import ALL_TASKS, arranged


def stream(began: int, ended: int, *files: int, rank: int = -1) -> CallStream:
    return CallStream(began, ended, rank, [], frozenset(files))


def test_processes_that_run_at_once_are_tasks_and_those_after_them_follow_a_barrier() -> None:
    first, second = stream(0, 10, 1), stream(1, 9, 2)
    third, fourth = stream(11, 20, 2), stream(12, 19, 1)
    assert arranged([fourth, second, third, first]) == [
        [first, ALL_TASKS, fourth],
        [second, ALL_TASKS, third],
    ]


def test_programs_of_a_script_are_one_task() -> None:
    parts = [stream(0, 5), stream(6, 8), stream(9, 12)]
    assert arranged(parts) == [[parts[0], ALL_TASKS, parts[1], ALL_TASKS, parts[2]]]


def test_a_process_that_begins_while_others_run_waits_for_none() -> None:
    parts = [stream(0, 5), stream(1, 20), stream(6, 30)]
    assert arranged(parts) == [[parts[0], parts[2]], [parts[1]]]


def test_the_streams_of_a_rank_stay_together() -> None:
    phases = [[stream(10 * phase, 10 * phase + 9, rank=rank) for rank in (0, 1, 2)] for phase in range(2)]
    later = phases[1][::-1]
    assert arranged([*phases[0], *later]) == [
        [phases[0][rank], ALL_TASKS, phases[1][rank]] for rank in range(3)
    ]


def test_a_task_that_begins_later_waits_for_the_barriers_before_it() -> None:
    parts = [stream(0, 5), stream(6, 9), stream(7, 9)]
    assert arranged(parts) == [[parts[0], ALL_TASKS, parts[1]], [ALL_TASKS, parts[2]]]
