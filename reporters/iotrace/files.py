"""The files of a trace: sizes, cache state, and which tasks use them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from probes.common.io_classes import OPERATIONS
from reporters.iotrace.calls import DIRECT, MOVING, TRUNCATED, CallStream, IoCall

_NAMED_ONLY = frozenset(("stat", "unlink", "rename", "other"))


@dataclass
class TracedFile:
    """A file. *initial_bytes* and *cached* (a share) are those at its first use; *began* is when that was."""

    began: int
    initial_bytes: int = 0
    cached: float = 0.0
    final_bytes: int = 0
    is_direct: bool = False
    tasks: set[int] = field(default_factory=set)


class TracedFiles:
    """The files that the calls of a program use, by the hash of their names.

    A file and its new name are one file: programs that write to a temporary name and rename it do so again
    and again. Names that are only asked for (stat) are all one file, 0, which is never made.
    """

    NAMES = 0

    def __init__(self) -> None:
        self.files: dict[int, TracedFile] = {}
        self._renamed: dict[int, int] = {}

    def identity(self, file: int) -> int:
        file = self._renamed.get(file, file)
        return file if file in self.files else self.NAMES

    def add(self, task: int, streams: Iterable[CallStream]) -> None:
        """Note the files that *task* uses."""
        for stream in streams:
            for call in stream.calls:
                self._note(task, call)

    def _note(self, task: int, call: IoCall) -> None:
        operation = call.operation
        if operation == "rename":
            self._renamed[call.more & 0xFFFF_FFFF_FFFF_FFFF] = self._renamed.get(call.file, call.file)
        if operation in _NAMED_ONLY or operation == "barrier":
            return
        name = self._renamed.get(call.file, call.file)
        file = self.files.setdefault(name, TracedFile(call.began))
        file.tasks.add(task)
        if operation == "open":
            self._note_open(file, call)
        elif operation in MOVING:
            file.final_bytes = max(file.final_bytes, call.offset + call.result)
            if call.operation in ("read", "fread") and not file.initial_bytes and call.began <= file.began:
                file.initial_bytes = call.offset + call.result  # its descriptor was open before

    @staticmethod
    def _note_open(file: TracedFile, call: IoCall) -> None:
        file.is_direct = file.is_direct or bool(call.flags & DIRECT)
        if call.began <= file.began:
            file.began = call.began
            file.initial_bytes = 0 if call.flags & TRUNCATED else call.size
            file.cached = call.more / call.size if call.size and call.more > 0 else 0.0
            file.final_bytes = max(file.final_bytes, file.initial_bytes)


def is_played(operation: str) -> bool:
    """Return whether a replay makes the call; renames and calls on directories are left out."""
    return operation in OPERATIONS and operation not in ("rename", "other", "barrier", "nothing")
