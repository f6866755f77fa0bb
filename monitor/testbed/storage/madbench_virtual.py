"""MADbench's input and output in virtual time: tasks that write, then read twice, a limited number at
once."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from monitor.testbed.storage.virtual import VirtualStorage

CALL_BYTES = 32 * 1024


@dataclass(frozen=True)
class Load:
    """*tasks* write and read *part_bytes* each between two barriers, *rounds* times a phase."""

    tasks: int
    part_bytes: int
    rounds: int


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
    calls = load.part_bytes // CALL_BYTES
    running = [(start, task, 0) for task in range(min(tokens, load.tasks))]
    waiting = list(range(len(running), load.tasks))[::-1]
    end = start
    while running:
        arrival, task, call = heapq.heappop(running)
        offset = (number * calls + call) * CALL_BYTES
        ended = storage.serve(task, offset, CALL_BYTES, is_write=is_write, arrival_seconds=arrival)
        end = max(end, ended)
        if call + 1 < calls:
            heapq.heappush(running, (ended, task, call + 1))
        elif waiting:
            heapq.heappush(running, (ended, waiting.pop(), 0))
    return end
