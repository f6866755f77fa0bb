"""The I/O signature of an application: what its tasks do to files, folded into loops (docs/storage.md).

A signature comes from another host and tells a program which files to write: everything in it is checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.common.file_space import FileSpace
from probes.common.io_classes import IO_CLASSES, OPERATIONS, WAITS

FORMAT = "gridcast-io-signature"
VERSION = 1
MAX_BYTES = 64 * 1024
SOURCES = ("trace", "strace", "darshan-dxt", "darshan-counters")
MAX_TASKS = 1024
MAX_FILES = 100_000
MAX_CALLS = 100_000_000
MAX_CALL_BYTES = 1 << 30
MAX_DEPTH = 16
PLAYED = tuple(name for name in OPERATIONS[1:] if name != "barrier")
_MOVING = ("read", "write", "fread", "fwrite")
_LARGEST = 1 << 62
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")


class BadSignature(Exception):
    """A text is no signature that can be played; the message says why, in one line."""


@dataclass(frozen=True)
class IoSignature:
    """A checked signature. *plan* is what ``kernels/replay.c`` reads."""

    document: Mapping[str, Any]
    digest: str
    plan: str
    calls: int
    needed_bytes: int  # of the disk: what the files have, as the signature says or as its calls fill them

    @property
    def tasks(self) -> int:
        return int(self.document["tasks"])

    @property
    def bytes_read(self) -> int:
        return int(self.document["bytes"]["read"])

    @property
    def bytes_written(self) -> int:
        return int(self.document["bytes"]["write"])


def digest(text: str) -> str:
    """Return 16 hexadecimal digits that identify the signature; spaces and the order of names do not matter.

    Raises:
        BadSignature: *text* is no JSON object.
    """
    return _digest(_object(text))


def parse(text: str) -> IoSignature:
    """Return the signature in *text*.

    Raises:
        BadSignature: it is damaged, too large, of a newer version, or asks for what a replay must not do.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadSignature(f"a signature has at most {MAX_BYTES:,} bytes, got {len(text):,} characters")
    document = _object(text)
    try:
        checked = _Checked(document)
        plan = checked.plan()
        needed_bytes = max(checked.declared_bytes, checked.space.needed_bytes())
        return IoSignature(document, _digest(document), plan, checked.calls, needed_bytes)
    except KeyError as error:
        raise BadSignature(f"the signature has no {error.args[0]}") from None
    except (TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise BadSignature(f"the signature is damaged: {error}") from None


def write(document: Mapping[str, Any]) -> str:
    """Return *document* as text. Raises BadSignature if it is too long, or invalid."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"
    parse(text)
    return text


def _object(text: str) -> dict[str, Any]:
    if not text.strip():
        raise BadSignature("the signature is empty")
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadSignature(f"the signature is no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadSignature(f"the text is no signature: its format is not {FORMAT}")
    version = document.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise BadSignature(
            f"the signature has version {version!r:.40}, this gridcast reads {VERSION}"
            + (": update it" if newer else "")
        )
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _digest(document: Mapping[str, Any]) -> str:
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _whole(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadSignature(f"the signature has {value!r:.80} for {what}, expected {least:,} to {most:,}")
    return value


def _number(value: object, what: str, most: float = 1e9) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= most:
        raise BadSignature(f"the signature has {value!r:.80} for {what}, expected 0 to {most:g}")
    return float(value)


class _Checked:
    """Checks a document and writes the plan of its replay."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.calls = 0
        self.declared_bytes = 0
        self.space = FileSpace()
        self.tasks = _whole(document["tasks"], "tasks", 1, MAX_TASKS)
        self._check_figures()

    def _check_figures(self) -> None:
        document = self._document
        if document["source"] not in SOURCES:
            raise BadSignature(
                f"the signature has the source {document['source']!r:.40}, known are {', '.join(SOURCES)}"
            )
        for name in IO_CLASSES:
            _whole(document["calls"][name], f"calls of {name}", 0, _LARGEST)
            _number(document["seconds"][name], f"seconds of {name}", 1e12)
        for name in WAITS:
            _number(document["seconds"][name], f"seconds of {name}", 1e12)
        for name in ("read", "write"):
            _whole(document["bytes"][name], f"bytes of {name}", 0, _LARGEST)
        _number(document["approximated"], "approximated", 1.0)

    def plan(self) -> str:
        """Return the lines of the plan. Counts the calls on the way."""
        files = [*self._files()]
        programs = [*self._programs()]
        first = (
            f"plan {VERSION} {self.tasks} {self._file_count} {len(files)} {len(self._document['programs'])}"
        )
        _whole(self.calls, "calls", 1, MAX_CALLS)
        return "\n".join([first, *files, *programs]) + "\n"

    def _files(self) -> Iterator[str]:
        self._file_count = 0
        names = set()
        for family in self._document["files"]:
            name = family["name"]
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise BadSignature(
                    f"the signature names a file outside of the scratch directory: {name!r:.80}"
                )
            if name in names:
                raise BadSignature(f"the signature names {name!r} twice")
            names.add(name)
            count = _whole(family["count"], "files", 1, MAX_FILES)
            initial = _whole(family["initial_bytes"], "initial_bytes", 0, _LARGEST)
            final = _whole(family["final_bytes"], "final_bytes", 0, _LARGEST)
            cached = _number(family["cached"], "cached", 1.0)
            self._file_count = _whole(self._file_count + count, "files", 1, MAX_FILES)
            self.declared_bytes += count * max(initial, final)
            self.space.add_family(self._file_count, initial)
            yield f"files {name} {count} {initial} {cached:.6f} {int(family['direct'] is True)}"

    def _programs(self) -> Iterator[str]:
        first, barriers = 0, -1
        for program in self._document["programs"]:
            yield from self._program(program, first)
            first += self._program_tasks
            if barriers not in (-1, self._barriers):
                raise BadSignature(
                    f"the signature has tasks with {barriers:,} and with {self._barriers:,} barriers: "
                    "they would wait for each other without end"
                )
            barriers = self._barriers
        if first != self.tasks:
            raise BadSignature(f"the signature has {self.tasks:,} tasks and programs for {first:,}")

    def _program(self, program: Mapping[str, Any], expected: int) -> Iterator[str]:
        first = _whole(program["tasks"][0], "the first task", 0, self.tasks - 1)
        count = _whole(program["tasks"][1], "tasks of a program", 1, self.tasks - first)
        if first != expected:
            raise BadSignature(
                f"the signature has a program for the tasks from {first:,}, expected {expected:,}"
            )
        yield f"program {first} {count} {len(program['files'])}"
        self._slots, self._program_tasks, self._barriers = 0, count, 0
        self._runs: list[Sequence[int]] = []
        for run in program["files"]:
            yield self._run_of_files(*run)
        yield from self._body(program["body"], count, [])
        yield "done"

    def _run_of_files(self, first: object, by_task: object, slots: object, by_slot: object) -> str:
        numbers = [
            _whole(value, "files of a program", least, MAX_FILES)
            for value, least in ((first, 0), (by_task, -MAX_FILES), (slots, 1), (by_slot, -MAX_FILES))
        ]
        last_task, last_slot = numbers[1] * (self._program_tasks - 1), numbers[3] * (numbers[2] - 1)
        for file in (0, last_task, last_slot, last_task + last_slot):
            _whole(numbers[0] + file, "a file", 0, self._file_count - 1)
        self._runs.append([self._slots, *numbers])
        self._slots = _whole(self._slots + numbers[2], "files of a program", 1, MAX_FILES)
        return " ".join(["slots", *map(str, numbers)])

    def _body(self, body: Sequence[Mapping[str, Any]], executions: int, loops: list[int]) -> Iterator[str]:
        if len(loops) > MAX_DEPTH:
            raise BadSignature(f"the signature nests loops deeper than {MAX_DEPTH}")
        for instruction in body:
            if "body" in instruction:
                times = _whole(instruction["times"], "times", 1, MAX_CALLS)
                if not instruction["body"]:
                    raise BadSignature("the signature has a loop without calls")
                _whole(executions * times, "calls", 1, MAX_CALLS)
                yield f"loop {times}"
                yield from self._body(instruction["body"], executions * times, [*loops, times])
                yield "end"
            elif instruction["op"] == "barrier":
                self._barriers += executions // self._program_tasks
                _whole(self._barriers, "barriers", 1, MAX_CALLS)
                yield "barrier"
            else:
                self.calls = _whole(self.calls + executions, "calls", 1, MAX_CALLS)
                yield self._call(instruction, executions, loops)

    def _call(self, call: Mapping[str, Any], executions: int, loops: Sequence[int]) -> str:
        operation = call["op"]
        if operation not in PLAYED:
            raise BadSignature(f"the signature has the operation {operation!r:.40}, which cannot be played")
        slots, lowest, highest = self._slots_of(call["file"], loops)
        size = _whole(call.get("size", 0), "size", 0, MAX_CALL_BYTES if operation in _MOVING else _LARGEST)
        think = _number(call.get("think", 0.0), "think", 1e6)
        flags = _whole(call.get("flags", 0), "flags", 0, 255)
        by_task = _whole(call.get("by_task", 0), "by_task", -_LARGEST, _LARGEST)
        where, end = self._place(call.get("at", [0]), size, by_task, loops)
        self.space.add_calls(operation, self._files_of(lowest, highest), executions, size, end)
        if operation == "rename":
            where = f"a {self._slots_of(call['to'], loops)[0]}"  # the kernel's place of a rename is a slot
            by_task = 0
        numbers = [size, math.floor(think * 1e9), flags, by_task]
        return " ".join(["call", str(OPERATIONS.index(operation)), slots, *map(str, numbers), where])

    def _slots_of(self, file: object, loops: Sequence[int]) -> tuple[str, int, int]:
        """Return a slot with its steps in the loops around the call, the lowest and the highest slot."""
        slots = file if isinstance(file, list) else [file]
        if not 1 <= len(slots) <= 1 + len(loops):
            raise BadSignature(
                f"the signature has {file!r:.80} for file, expected a slot and the steps of its loops"
            )
        steps = [_whole(slot, "file", -MAX_FILES, MAX_FILES) for slot in slots]
        reach = [step * (times - 1) for step, times in zip(steps[1:], loops)]
        lowest, highest = (
            _whole(steps[0] + sum(end(part, 0) for part in reach), "file", 0, self._slots - 1)
            for end in (min, max)
        )
        return " ".join(map(str, [len(steps), *steps])), lowest, highest

    def _files_of(self, lowest: int, highest: int) -> tuple[int, int]:
        """Return the first and the last file of slots of the program, of all its tasks."""
        numbers = [
            file + by_task * task + by_slot * (slot - begin)
            for begin, file, by_task, slots, by_slot in self._runs
            if begin <= highest and lowest < begin + slots
            for slot in (max(begin, lowest), min(begin + slots - 1, highest))
            for task in (0, self._program_tasks - 1)
        ]
        return min(numbers), max(numbers)

    def _place(self, at: object, size: int, by_task: int, loops: Sequence[int]) -> tuple[str, int | None]:
        """Return a place in the plan, and the highest end of the calls there, or None: they follow others."""
        if at == "next":
            return "n", None
        if isinstance(at, dict):
            low, high, align = (_whole(value, "random", 0, _LARGEST) for value in at["random"])
            if not low <= high or align < 1:
                raise BadSignature(
                    f"the signature has {at['random']!r:.80} for random, expected [low, high, align]"
                )
            return f"r {low} {high} {align}", high + size
        if not isinstance(at, list) or not 1 <= len(at) <= 1 + len(loops):
            raise BadSignature(
                f"the signature has {at!r:.80} for at, expected an offset and the steps of its loops"
            )
        steps = [_whole(value, "at", -_LARGEST, _LARGEST) for value in at]
        reach = [steps[0], by_task * (self._program_tasks - 1)]
        reach += [step * (times - 1) for step, times in zip(steps[1:], loops)]
        lowest = steps[0] + sum(min(part, 0) for part in reach[1:])
        highest = steps[0] + sum(max(part, 0) for part in reach[1:]) + size
        if lowest < 0 or highest > _LARGEST:
            raise BadSignature(f"the signature has {at!r:.80} for at, which leaves the file")
        return " ".join(["a", str(len(steps)), *map(str, steps)]), highest
