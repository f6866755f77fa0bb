"""MADbench's input and output in virtual time: tasks that write, then read twice, a limited number at
once."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from monitor.testbed.storage.virtual import VirtualStorage

CALL_BYTES = 32 * 1024


@dataclass(frozen=True)
class Load:
    """*tasks* write and read *part_bytes* each between two barriers, *rounds* times a phase.

    Reads are *reads_in_flight* calls of *read_bytes* at a time, as the operating system reads ahead.
    """

    tasks: int
    part_bytes: int
    rounds: int
    read_bytes: int = CALL_BYTES
    reads_in_flight: int = 1


def io_seconds(storage: VirtualStorage, load: Load, *, writers: int, readers: int) -> float:
    """Return the seconds of a phase of writing and of two phases of reading. A task keeps its token for a
    part."""
    end = 0.0
    for is_write, tokens in ((True, writers), (False, readers), (False, readers)):
        for number in range(load.rounds):
            end = _round(storage, load, number, end, is_write=is_write, tokens=tokens)
    return end


def _round(
    storage: VirtualStorage, load: Load, number: int, start: float, *, is_write: bool, tokens: int
) -> float:
    """Return when the last task has written or read its part *number*, if all arrive at *start*."""
    call_bytes, in_flight = (CALL_BYTES, 1) if is_write else (load.read_bytes, load.reads_in_flight)
    calls = load.part_bytes // call_bytes
    ends = dict.fromkeys(range(load.tasks), start)  # of the last call of each task
    early_calls = range(min(in_flight, calls))
    pending = [(start, task, call) for task in range(min(tokens, load.tasks)) for call in early_calls]
    waiting = list(range(tokens, load.tasks))[::-1]
    while pending:
        arrival, task, call = heapq.heappop(pending)
        offset = (number * calls + call) * call_bytes
        ended = storage.serve(task, offset, call_bytes, is_write=is_write, arrival_seconds=arrival)
        ended = ends[task] = max(ended, ends[task])  # a task gets its calls in order
        if call + in_flight < calls:
            heapq.heappush(pending, (ended, task, call + in_flight))
        elif call + 1 == calls and waiting:
            following = waiting.pop()
            for early_call in early_calls:
                heapq.heappush(pending, (ended, following, early_call))
    return max(ends.values())
