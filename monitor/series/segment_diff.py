"""What differs between two segments of a series, in words: ``file_bytes 1 MB -> 100 MB``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from monitor.units import humanised, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class ChangeKind(StrEnum):
    """What of a series changed."""

    PROBE = "probe"
    PARAMETERS = "parameters"
    RESOURCES = "resources"


@dataclass(frozen=True)
class SegmentChange:
    """One thing that is not as it was; *before* and *after* are as people read them."""

    kind: ChangeKind
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}"


class Identified(Protocol):
    """A segment, or what a series would run (``monitor.models.segment.Identity``)."""

    @property
    def probe(self) -> str: ...
    @property
    def probe_version(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def bindings(self) -> Mapping[str, Sequence[str]]: ...


def segment_changes(before: Identified, after: Identified) -> list[SegmentChange]:
    """What is different in *after*. Of another probe nothing else is said: its parameters are its own."""
    if before.probe != after.probe:
        return [SegmentChange(ChangeKind.PROBE, "probe", _probe(before), _probe(after))]
    return [*_version(before, after), *_parameters(before, after), *_resources(before, after)]


def changed_subjects(found: Iterable[SegmentChange]) -> str:
    """What changed, in short: ``its probe and its parameters``."""
    kinds = list(dict.fromkeys(change.kind for change in found))
    *others, last = [f"its {kind}" for kind in kinds]
    return f"{', '.join(others)} and {last}" if others else last


def _probe(one: Identified) -> str:
    return f"{one.probe} {one.probe_version}".strip()


def _version(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    if before.probe_version != after.probe_version:
        versions = (one.probe_version or "unknown" for one in (before, after))
        yield SegmentChange(ChangeKind.PROBE, f"probe {after.probe}", *versions)


def _parameters(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    for name in sorted({*before.parameters, *after.parameters}):
        values = before.parameters.get(name), after.parameters.get(name)
        if values[0] != values[1]:
            yield SegmentChange(ChangeKind.PARAMETERS, name, *_told_apart(name, *values))


def _told_apart(name: str, before: Any, after: Any) -> tuple[str, str]:
    """Both with a unit that suits their size, or exactly where that would look the same."""
    short = parameter_text(name, before), parameter_text(name, after)
    return short if short[0] != short[1] else (repr(before), repr(after))


def parameter_text(name: str, value: Any) -> str:
    """The *value* of the parameter *name* as people read it."""
    unit = unit_of(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and unit:
        return humanised(value, unit)
    return "none" if value is None else str(value)


def _resources(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    for role in sorted({*before.bindings, *after.bindings}):
        old, new = list(before.bindings.get(role, ())), list(after.bindings.get(role, ()))
        if old != new:
            gone, come = (
                [name for name in one if name not in other] for one, other in ((old, new), (new, old))
            )
            yield SegmentChange(
                ChangeKind.RESOURCES, role, *map(_listed, (gone, come) if gone and come else (old, new))
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
