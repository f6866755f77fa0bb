"""Calls of several tasks in virtual time: MADbench's, their replay, and sequential reading and writing."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forecasting.elsewhere.runs import IoRun, IoTime
from monitor.testbed.storage.virtual import VirtualStorage

REQUEST_BYTES = 256 * 1024  # the kernel divides calls
TASKS, BINS, PART_BYTES = 4, 8, 2 * 1024 * 1024

Sharing = Literal["a file a task", "one shared file"]
SHARINGS: tuple[Sharing, ...] = ("a file a task", "one shared file")  # MADbench's POSIX and MPI-IO modes


@dataclass(frozen=True)
class Call:
    """A call of a task; *think_seconds* pass before it. *size* 0 is a barrier."""

    file: int
    offset: int
    size: int
    is_write: bool
    think_seconds: float = 0.0


BARRIER = Call(0, 0, 0, is_write=False)
Program = Sequence[Sequence[Call]]  # the calls of each task


def madbench(sharing: Sharing, *, busy_seconds: float = 0.01) -> Program:
    """Return the calls of MADbench's phases: write all parts, read and write each, read all."""
    programs = []
    for task in range(TASKS):
        calls: list[Call] = []
        for phase in ("w", "rw", "r"):
            for number in range(BINS):
                think = busy_seconds
                for way in phase:
                    calls.append(_part(sharing, task, number, way, think))
                    think = 0.0
            calls.append(BARRIER)
        programs.append(calls)
    return programs


def sequential(sharing: Sharing) -> Program:
    """Return the calls of IOR: all tasks write all their parts, then read them."""
    return [
        [
            *(_part(sharing, task, number, "w", 0.0) for number in range(BINS)),
            BARRIER,
            *(_part(sharing, task, number, "r", 0.0) for number in range(BINS)),
            BARRIER,
        ]
        for task in range(TASKS)
    ]


def jittered(program: Program, seed: int, jitter: float = 0.05) -> Program:
    """Return *program* as another run does it: think times differ."""
    chance = random.Random(seed)
    return [
        [
            replace(call, think_seconds=call.think_seconds * chance.lognormvariate(0.0, jitter))
            for call in calls
        ]
        for calls in program
    ]


def play(storage: VirtualStorage, program: Program, started_at_seconds: float) -> IoRun:
    """Return the run of *program* on *storage*: the mean seconds of the tasks in reads and in writes."""
    seconds = {"read": 0.0, "write": 0.0}
    moved = {"read": 0.0, "write": 0.0}
    arrivals = [(0.0, task, 0) for task in range(len(program))]
    waiting: list[tuple[float, int, int]] = []
    while arrivals:
        now, task, place = heapq.heappop(arrivals)
        if place == len(program[task]):
            continue
        call = program[task][place]
        if not call.size:
            waiting.append((now, task, place))
            if len(waiting) == len(program):
                arrivals = [(max(waiting)[0], each, at + 1) for _, each, at in waiting]
                heapq.heapify(arrivals)
                waiting = []
            continue
        name = "write" if call.is_write else "read"
        began = now + call.think_seconds
        end = _serve(storage, call, began)
        seconds[name] += (end - began) / len(program)
        moved[name] += call.size
        heapq.heappush(arrivals, (end, task, place + 1))
    return IoRun(started_at_seconds, {name: IoTime(seconds[name], moved[name]) for name in seconds})


def _part(sharing: Sharing, task: int, number: int, way: str, think_seconds: float) -> Call:
    shared = sharing == "one shared file"
    place = number * TASKS + task if shared else number
    return Call(0 if shared else task, place * PART_BYTES, PART_BYTES, way == "w", think_seconds)


def _serve(storage: VirtualStorage, call: Call, arrival_seconds: float) -> float:
    end = arrival_seconds
    for offset in range(call.offset, call.offset + call.size, REQUEST_BYTES):
        end = storage.serve(call.file, offset, REQUEST_BYTES, is_write=call.is_write, arrival_seconds=end)
    return end
