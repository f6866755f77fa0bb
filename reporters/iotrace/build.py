"""Make the signature of a trace."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from probes.common import signature
from probes.common.io_classes import CLASS_OF, IO_CLASSES, WAITS
from reporters.iotrace.calls import STREAMED, BadTrace, CallStream, IoCall, IoTrace
from reporters.iotrace.coarse import coarse
from reporters.iotrace.files import TracedFiles, is_lookup, renamed_to
from reporters.iotrace.folding import CallShape, Folder
from reporters.iotrace.programs import Programs
from reporters.iotrace.tasks import AllTasks, TaskSequence, arranged, streams_of

_BUFFER_BYTES = 4096  # of a stream
_MOST_NODES = 4000  # of a task, before calls are summed up
_MOST_PHASES = 100
_BARRIER = CallShape("barrier")
_SIZELESS = frozenset(("unlink", "rename", "mkdir", "rmdir", "close", "flush", "fsync"))


def build(trace: IoTrace, application: Mapping[str, Any] | None) -> str:
    """Return the signature of *trace* as text. *application* is the traced probe, with its parameters.

    Raises:
        BadTrace: there is nothing to play, or the calls cannot be folded into 64 KiB.
    """
    streams = _relevant(trace.streams)
    if not streams:
        raise BadTrace("the trace has no read or write of a file in its areas")
    tasks = arranged(streams)
    if len(tasks) > signature.MAX_TASKS:
        raise BadTrace(f"the trace has {len(tasks):,} tasks, a signature has at most {signature.MAX_TASKS:,}")
    files = TracedFiles()
    for number, task in enumerate(tasks):
        files.add(number, streams_of(task))
    builder = _Builder(trace, files, tasks)
    try:
        return signature.write({**builder.document(is_coarse=False), "application": application})
    except signature.BadSignature:  # it is too long
        pass
    try:
        return signature.write({**builder.document(is_coarse=True), "application": application})
    except signature.BadSignature as error:
        raise BadTrace(f"the calls cannot be folded: {error}") from None


def _relevant(streams: Sequence[CallStream]) -> list[CallStream]:
    """Return the streams without those of no consequence, such as those of a shell that starts the tasks.

    They moved less than a thousandth of the bytes and their calls took less than a hundredth of the time.
    """
    weights = []
    for stream in streams:
        moved = nanoseconds = 0
        files = set()
        for call in stream.calls:
            moved += call.result if CLASS_OF[call.operation] in ("read", "write") and call.result > 0 else 0
            nanoseconds += call.duration if CLASS_OF[call.operation] in IO_CLASSES else 0
            files.add(call.file)
        weights.append((moved, nanoseconds))
        stream.files = frozenset(files)
    least_moved = max(sum(moved for moved, _ in weights) / 1000, 1)
    least_spent = sum(spent for _, spent in weights) / 100
    return [
        stream
        for stream, (moved, spent) in zip(streams, weights)
        if moved >= least_moved or (moved and spent >= least_spent)
    ]


class _Builder:
    def __init__(self, trace: IoTrace, files: TracedFiles, tasks: Sequence[TaskSequence]) -> None:
        self._trace, self._files, self._tasks = trace, files, tasks
        self._figures = [_TaskFigures() for _ in tasks]
        self._has_barriers = len({_barriers(task) for task in tasks}) == 1
        shapes: dict[object, int] = {}
        self._programs = Programs(files)
        for number, task in enumerate(tasks):
            self._fold(number, task, Folder(shapes))

    def _fold(self, number: int, task: TaskSequence, folder: Folder) -> None:
        figures, slots = self._figures[number], dict[int, int]()
        for item in task:
            if isinstance(item, AllTasks):
                folder.push(_BARRIER, 0, 0, 0.0)
                figures.next_phase()
                continue
            for call, think in figures.counted(item):
                if call.operation == "barrier":
                    if self._has_barriers:
                        folder.push(_BARRIER, 0, 0, 0.0)
                        figures.next_phase()
                else:
                    slot = slots.setdefault(self._files.identity(call.file), len(slots))
                    offset = call.offset
                    if call.operation == "rename" and not is_lookup(call):
                        offset = slots.setdefault(renamed_to(call), len(slots))
                    folder.push(_shape(call), slot, offset, think)
                    if len(folder.nodes) > _MOST_NODES:
                        folder.nodes[: _MOST_NODES // 2] = coarse(folder, folder.nodes[: _MOST_NODES // 2])
        self._programs.add(list(slots), folder)

    def document(self, *, is_coarse: bool) -> dict[str, Any]:
        if is_coarse:
            self._programs.make_coarse()
        figures = self._figures
        phases = max(len(task.phases) for task in figures)
        return {
            "format": signature.FORMAT,
            "version": signature.VERSION,
            "source": self._trace.source,
            "tasks": len(figures),
            "memory_bytes": self._trace.memory_bytes,
            "calls": {name: sum(task.calls[name] for task in figures) for name in IO_CLASSES},
            "bytes": {name: sum(task.bytes[name] for task in figures) for name in ("read", "write")},
            "seconds": _mean_seconds([task.seconds for task in figures]),
            "io_seconds": round(
                sum(task.seconds[name] for task in figures for name in IO_CLASSES) / len(figures), 6
            ),
            "elapsed_seconds": _elapsed(self._tasks),
            "phases": [
                {"seconds": _mean_seconds([task.phase(number) for task in figures])}
                for number in range(min(phases, _MOST_PHASES))
            ],
            "approximated": self._programs.approximated(),
            "files": self._programs.families(),
            "programs": self._programs.written(),
        }


class _TaskFigures:
    """The calls, bytes and seconds of one task, by class, and by phase."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.phases: list[dict[str, float]] = [defaultdict(float)]

    @property
    def seconds(self) -> dict[str, float]:
        return {name: sum(phase.get(name, 0.0) for phase in self.phases) for name in (*IO_CLASSES, *WAITS)}

    def phase(self, number: int) -> dict[str, float]:
        return self.phases[number] if number < len(self.phases) else {}

    def next_phase(self) -> None:
        self.phases.append(defaultdict(float))

    def counted(self, stream: CallStream) -> Iterator[tuple[IoCall, float]]:
        """Yield each call with the seconds of thinking before it, streams in pieces of their buffer."""
        previous = stream.began if stream.rank < 0 else None  # before its first call, MPI starts
        for call, think in _pieces(stream.calls, previous):
            name = CLASS_OF[call.operation]
            self.calls[name] += max(call.more, 1) if call.operation in STREAMED else 1
            self.phases[-1][name] += call.duration * 1e-9
            self.phases[-1]["think"] += think
            if name in ("read", "write"):
                self.bytes[name] += max(call.result, 0)
            yield call, think


def _pieces(calls: Any, previous: int | None) -> Iterator[tuple[IoCall, float]]:
    """Divide sequential calls on a stream into pieces of its buffer, which is how the system sees them."""
    pending: IoCall | None = None
    waited = 0.0
    for call in calls:
        think = max(call.began - previous, 0) * 1e-9 if previous is not None else 0.0
        previous = call.ended
        is_next = (
            pending is not None
            and call.operation == pending.operation
            and call.file == pending.file
            and call.offset == pending.offset + pending.size
        )
        if pending is not None and not is_next:
            yield pending, waited
            pending, waited = None, 0.0
        if call.operation not in STREAMED or call.size > _BUFFER_BYTES:
            if pending is not None:
                yield pending, waited
                pending, waited = None, 0.0
            yield call, think
            continue
        if pending is None:
            pending = call
        else:
            pending = pending._replace(
                duration=pending.duration + call.duration,
                size=pending.size + call.size,
                result=pending.result + call.result,
                more=pending.more + call.more,
            )
        waited += think
        if pending.size >= _BUFFER_BYTES:
            rest = pending.size - _BUFFER_BYTES
            yield pending._replace(size=_BUFFER_BYTES, result=_BUFFER_BYTES), waited
            offset = pending.offset + _BUFFER_BYTES
            waited = 0.0
            pending = (
                pending._replace(offset=offset, size=rest, result=rest, duration=0, more=0) if rest else None
            )
    if pending is not None:
        yield pending, waited


def _shape(call: IoCall) -> CallShape:
    operation = call.operation
    if is_lookup(call):
        return CallShape("stat")
    if operation in ("open", "advise"):
        return CallShape(operation, 0 if operation == "open" else call.size, call.flags)
    if operation in _SIZELESS:
        return CallShape(operation)
    size = call.size if operation != "lock" else min(call.size, 1)
    return CallShape(operation, min(max(size, 0), signature.MAX_CALL_BYTES))


def _barriers(task: TaskSequence) -> int:
    return sum(call.operation == "barrier" for stream in streams_of(task) for call in stream.calls)


def _mean_seconds(seconds: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        name: round(sum(task.get(name, 0.0) for task in seconds) / len(seconds), 6)
        for name in (*IO_CLASSES, *WAITS)
    }


def _elapsed(tasks: Sequence[TaskSequence]) -> float:
    calls = [call for task in tasks for stream in streams_of(task) for call in _ends(stream)]
    return round((max(call.ended for call in calls) - min(call.began for call in calls)) * 1e-9, 6)


def _ends(stream: CallStream) -> list[IoCall]:
    first = last = None
    for call in stream.calls:
        first, last = first or call, call
    return [call for call in (first, last) if call is not None]
