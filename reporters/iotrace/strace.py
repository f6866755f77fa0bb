"""Trace by strace, for programs that no library can be preloaded into: slow, about 70 microseconds a call."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Callable

from reporters.iotrace.calls import (
    APPENDING,
    CREATED,
    DIRECT,
    FOR_READING,
    FOR_WRITING,
    TRUNCATED,
    IoCall,
)
from reporters.iotrace.records import write_part

_MOVING = {
    "read": "read",
    "pread64": "read",
    "readv": "read",
    "preadv": "read",
    "write": "write",
    "pwrite64": "write",
    "writev": "write",
    "pwritev": "write",
}
_PLAIN = {"fsync": "fsync", "fdatasync": "fdatasync", "ftruncate": "truncate", "fallocate": "allocate"}
_TRACED = (
    *_MOVING,
    *_PLAIN,
    "open",
    "openat",
    "creat",
    "close",
    "lseek",
    "fadvise64",
    "clone",
    "clone3",
    "fork",
    "vfork",
)
_OPENS = frozenset(("open", "openat", "creat"))
_CLONES = frozenset(("clone", "clone3", "fork", "vfork"))
_FLAGS = {
    "O_CREAT": CREATED,
    "O_TRUNC": TRUNCATED,
    "O_DIRECT": DIRECT,
    "O_APPEND": APPENDING,
    "O_RDONLY": FOR_READING,
    "O_WRONLY": FOR_WRITING,
    "O_RDWR": FOR_READING | FOR_WRITING,
}
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/etc/", "/run/")
_ADVICE = {
    "POSIX_FADV_RANDOM": 1,
    "POSIX_FADV_SEQUENTIAL": 2,
    "POSIX_FADV_WILLNEED": 3,
    "POSIX_FADV_DONTNEED": 4,
}

_LINE = re.compile(r"(?P<pid>\d+) +(?P<at>\d+\.\d+) (?P<rest>.*)")
_CALL = re.compile(
    r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)(?:<(?P<path>[^>]*)>)?.*<(?P<seconds>\d+\.\d+)>$"
)
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>(?P<rest>.*)")
_DESCRIPTOR = re.compile(r"(\d+)<(/[^>]*)>")

RunProgram = Callable[[Sequence[str], Mapping[str, str]], int]


def refusal(program: str) -> str:
    """Return why *program* cannot be traced by strace here, or nothing if it can."""
    path = shutil.which(program)
    if path and Path(path).stat().st_mode & 0o6000 and os.geteuid() != 0:
        return "strace would prevent the change"
    try:
        done = subprocess.run(
            ["strace", "-o", os.devnull, "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        return f"strace cannot be run: {error.strerror}"
    lines = done.stderr.splitlines() or ["no reason given"]
    return f"strace is refused: {lines[0].removeprefix('strace: ')}" if done.returncode else ""


def run(program: Sequence[str], directory: Path, areas: Sequence[Path], run_program: RunProgram) -> int:
    """Run *program* by strace and write the files of its processes to *directory*; return its exit status."""
    log = directory / "log"
    options = ["-f", "-ttt", "-T", "-y", "-s", "0", "-e", f"trace={','.join(_TRACED)}", "-e", "signal=none"]
    status = run_program(["strace", *options, "-o", str(log), "--", *program], os.environ)
    if log.exists():
        with log.open(encoding="utf-8", errors="replace") as lines:
            for pid, calls in parse(lines, [str(area.resolve()) for area in areas]).items():
                if calls:
                    write_part(directory / f"{pid}.part", pid, calls)
        log.unlink()
    return status


@dataclass
class _Table:
    """The positions of a process's descriptors."""

    positions: dict[int, int] = field(default_factory=dict)


class _Log:
    """What the lines of strace's log say so far."""

    def __init__(self, areas: Sequence[str]) -> None:
        self.calls: dict[int, list[IoCall]] = {}
        self._areas, self._salt = areas, secrets.token_bytes(16)
        self._tables: dict[int, _Table] = {}
        self._unfinished: dict[int, str] = {}

    def add(self, line: str) -> None:
        match = _LINE.fullmatch(line)
        if match is None:
            return
        pid, at, rest = int(match["pid"]), match["at"], match["rest"]
        if rest.endswith("<unfinished ...>"):
            self._unfinished[pid] = f"{at} {rest[: -len('<unfinished ...>')]}"
            return
        resumed = _RESUMED.fullmatch(rest)
        if resumed is not None:
            at, _, begun = self._unfinished.pop(pid, f"{at} ").partition(" ")
            rest = begun + resumed["rest"]
        call = _CALL.fullmatch(rest)
        if call is not None:
            began, duration = round(float(at) * 1e9), round(float(call["seconds"]) * 1e9)
            self._note(pid, call, began, duration)

    def _note(self, pid: int, call: re.Match[str], began: int, duration: int) -> None:
        name, result = call["name"], int(call["result"])
        table = self._tables.setdefault(pid, _Table())
        if name in _CLONES:
            is_thread = "CLONE_FILES" in call["arguments"]
            self._tables[result] = table if is_thread else _Table(dict(table.positions))
            return
        if name in _OPENS:
            self._open(pid, table, call, began, duration)
            return
        descriptor = _DESCRIPTOR.match(call["arguments"])
        if descriptor is None:
            return
        number, path = int(descriptor[1]), descriptor[2]
        if name == "lseek":
            table.positions[number] = max(result, 0)
        elif self._is_in_area(path):
            numbers = [int(word) for word in re.findall(r", (-?\d+)(?=,|$)", call["arguments"])]
            self._file_call(
                pid, table, name, number, path, numbers, result, call["arguments"], began, duration
            )

    def _open(self, pid: int, table: _Table, call: re.Match[str], began: int, duration: int) -> None:
        path = call["path"]
        if int(call["result"]) < 0 or path is None or not self._is_in_area(path):
            return
        flags = 0
        for word in re.findall(r"O_\w+", call["arguments"]):
            flags |= _FLAGS.get(word, 0)
        if call["name"] == "creat":
            flags = CREATED | TRUNCATED | FOR_WRITING
        table.positions[int(call["result"])] = 0
        size = _size(path) if not flags & (CREATED | TRUNCATED) else 0
        self._append(pid, IoCall(began, duration, self._hash(path), 0, size, 0, -1, flags, "open"))

    def _file_call(
        self,
        pid: int,
        table: _Table,
        name: str,
        number: int,
        path: str,
        numbers: list[int],
        result: int,
        arguments: str,
        began: int,
        duration: int,
    ) -> None:
        file = self._hash(path)
        if name in _MOVING:
            is_positioned = name.startswith("p")
            size = numbers[0] if name in ("read", "write", "pread64", "pwrite64") and numbers else result
            offset = numbers[-1] if is_positioned and numbers else table.positions.get(number, 0)
            if not is_positioned:
                table.positions[number] = offset + max(result, 0)
            self._append(pid, IoCall(began, duration, file, offset, size, result, 1, 0, _MOVING[name]))
        elif name == "fadvise64":
            advice = next((value for word, value in _ADVICE.items() if word in arguments), 0)
            offset, size = [*numbers, 0, 0][:2]
            self._append(pid, IoCall(began, duration, file, offset, size, result, 1, advice, "advise"))
        else:
            size = numbers[-1] if numbers else 0
            self._append(pid, IoCall(began, duration, file, 0, size, result, 1, 0, _PLAIN.get(name, "close")))

    def _append(self, pid: int, call: IoCall) -> None:
        self.calls.setdefault(pid, []).append(call)

    def _is_in_area(self, path: str) -> bool:
        if self._areas:
            return any(path.startswith(area.rstrip("/") + "/") for area in self._areas)
        return not path.startswith(_SYSTEM)

    def _hash(self, path: str) -> int:
        digest = blake2b(path.encode("utf-8", "surrogateescape"), key=self._salt, digest_size=8).digest()
        return int.from_bytes(digest, "little")


def _size(path: str) -> int:
    """Return the size that the file has now: strace does not say what it was."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def parse(lines: Iterator[str], areas: Sequence[str]) -> dict[int, list[IoCall]]:
    """Return the calls of each thread in a log of ``strace -f -ttt -T -y -s 0``."""
    log = _Log(areas)
    for line in lines:
        log.add(line.rstrip("\n"))
    return log.calls
