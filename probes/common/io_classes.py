"""Classes of I/O calls: an application and its replay are compared class by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probes.base import Measurement

# In the order of the numbers in kernels/iotrace.c.
OPERATIONS = (
    "nothing",
    "open",
    "close",
    "read",
    "write",
    "fread",
    "fwrite",
    "flush",
    "fsync",
    "fdatasync",
    "advise",
    "truncate",
    "allocate",
    "stat",
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "lock",
    "unlock",
    "barrier",
)
IO_CLASSES = ("read", "write", "sync", "metadata")
WAITS = ("wait", "think")
CLASS_OF: Mapping[str, str] = {
    **dict.fromkeys(OPERATIONS[1:], "metadata"),
    **dict.fromkeys(("read", "fread"), "read"),
    **dict.fromkeys(("write", "fwrite", "flush"), "write"),
    **dict.fromkeys(("fsync", "fdatasync"), "sync"),
    **dict.fromkeys(("lock", "unlock", "barrier"), "wait"),
}


@dataclass(frozen=True)
class TaskTimes:
    """The calls, bytes and seconds of one task, by class."""

    calls: Mapping[str, int]
    bytes: Mapping[str, int]
    seconds: Mapping[str, float]

    @property
    def io_seconds(self) -> float:
        return sum(self.seconds.get(name, 0.0) for name in IO_CLASSES)


def io_metrics(tasks: list[TaskTimes], elapsed_seconds: float) -> list[Measurement]:
    """Return the metrics of an application or a replay with *tasks*, at least one."""

    def mean(name: str) -> float:
        return sum(task.seconds.get(name, 0.0) for task in tasks) / len(tasks)

    calls = {name: sum(task.calls.get(name, 0) for task in tasks) for name in IO_CLASSES}
    return [
        Measurement("io.seconds", sum(task.io_seconds for task in tasks) / len(tasks), "seconds"),
        *(Measurement(f"io.{name}.seconds", mean(name), "seconds") for name in IO_CLASSES if calls[name]),
        *(Measurement(f"io.{name}.seconds", mean(name), "seconds") for name in WAITS),
        Measurement("io.slowest.seconds", max(task.io_seconds for task in tasks), "seconds"),
        Measurement("io.elapsed.seconds", elapsed_seconds, "seconds"),
        *(
            Measurement(f"io.{name}.bytes", sum(task.bytes.get(name, 0) for task in tasks), "bytes")
            for name in ("read", "write")
        ),
        Measurement("io.calls", sum(calls.values()), "count"),
    ]
