"""The files of a trace: sizes, cache state, and which tasks use them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reporters.iotrace.calls import DIRECT, MOVING, TRUNCATED, CallStream, IoCall

_NAMED_ONLY = frozenset(("stat", "unlink", "rmdir"))
_ON_NAMES = frozenset((*_NAMED_ONLY, "rename", "mkdir"))


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
    """The files and directories that the calls of a program use, by the hash of their names.

    Names that are only asked for (stat) are all one file, 0, which is never made.
    """

    NAMES = 0

    def __init__(self) -> None:
        self.files: dict[int, TracedFile] = {}

    def identity(self, file: int) -> int:
        return file if file in self.files else self.NAMES

    def add(self, task: int, streams: Iterable[CallStream]) -> None:
        """Note the files that *task* uses."""
        for stream in streams:
            for call in stream.calls:
                self._note(task, call)

    def _note(self, task: int, call: IoCall) -> None:
        operation = call.operation
        if operation in _NAMED_ONLY or operation == "barrier" or is_lookup(call):
            return
        file = self._used(task, call.file, call.began)
        if operation == "open":
            self._note_open(file, call)
        elif operation == "rename":
            self._note_rename(file, self._used(task, renamed_to(call), call.began), call)
        elif operation in MOVING:
            file.final_bytes = max(file.final_bytes, call.offset + call.result)
            if call.operation in ("read", "fread") and not file.initial_bytes and call.began <= file.began:
                file.initial_bytes = call.offset + call.result  # its descriptor was open before

    def _used(self, task: int, name: int, began: int) -> TracedFile:
        file = self.files.setdefault(name, TracedFile(began))
        file.tasks.add(task)
        return file

    @staticmethod
    def _note_open(file: TracedFile, call: IoCall) -> None:
        file.is_direct = file.is_direct or bool(call.flags & DIRECT)
        if call.began <= file.began:
            file.began = call.began
            file.initial_bytes = 0 if call.flags & TRUNCATED else call.size
            file.cached = call.more / call.size if call.size and call.more > 0 else 0.0
            file.final_bytes = max(file.final_bytes, file.initial_bytes)

    @staticmethod
    def _note_rename(file: TracedFile, target: TracedFile, call: IoCall) -> None:
        """Move the bytes of *file* to *target*, which need not be there before."""
        target.final_bytes, file.final_bytes = max(file.final_bytes, target.final_bytes), 0
        if call.began <= target.began:
            target.began, target.initial_bytes, target.cached = call.began, 0, 0.0


def is_lookup(call: IoCall) -> bool:
    """Return whether the call only looks for a name: it asks for it, or cannot do anything to it."""
    return call.operation == "stat" or (call.operation in _ON_NAMES and call.result != 0)


def renamed_to(call: IoCall) -> int:
    """Return the new name of a rename."""
    return call.more & 0xFFFF_FFFF_FFFF_FFFF  # records have it with a sign
