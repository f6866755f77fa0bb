"""Describe the differences between two segments of a series: ``file_bytes 1 MB -> 100 MB``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from monitor.core.units import humanised, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterable


class ChangeKind(StrEnum):
    """The part of a series that changed."""

    PROBE = "probe"
    PARAMETERS = "parameters"
    RESOURCES = "resources"


@dataclass(frozen=True)
class SegmentChange:
    """One difference between two segments; *before* and *after* are values formatted for people."""

    kind: ChangeKind
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}"


class Identified(Protocol):
    """A ``Segment``, or the ``SegmentIdentity`` that a run of a series would have now."""

    @property
    def probe(self) -> str: ...
    @property
    def probe_version(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def bindings(self) -> Mapping[str, Sequence[str]]: ...


def segment_changes(before: Identified, after: Identified) -> list[SegmentChange]:
    """Return the differences from *before* to *after*.

    If the probe changed, no other difference is listed: parameters of different probes cannot be compared.
    """
    if before.probe != after.probe:
        return [SegmentChange(ChangeKind.PROBE, "probe", _probe(before), _probe(after))]
    return [*_version(before, after), *_parameters(before, after), *_resources(before, after)]


def changed_subjects(changes: Iterable[SegmentChange]) -> str:
    """Return the kinds of *changes* in words: ``its probe and its parameters``."""
    kinds = list(dict.fromkeys(change.kind for change in changes))
    *others, last = [f"its {kind}" for kind in kinds]
    return f"{', '.join(others)} and {last}" if others else last


def _probe(identity: Identified) -> str:
    return f"{identity.probe} {identity.probe_version}".strip()


def _version(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    if before.probe_version != after.probe_version:
        versions = (identity.probe_version or "unknown" for identity in (before, after))
        yield SegmentChange(ChangeKind.PROBE, f"probe {after.probe}", *versions)


def _parameters(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    for name in sorted({*before.parameters, *after.parameters}):
        values = before.parameters.get(name), after.parameters.get(name)
        if values[0] != values[1]:
            yield SegmentChange(ChangeKind.PARAMETERS, name, *_distinct_texts(name, *values))


def _distinct_texts(name: str, before: Any, after: Any) -> tuple[str, str]:
    """Return *before* and *after*, values of the parameter *name*, as two different texts.

    The texts are rounded unless rounding would make them equal.
    """
    short = parameter_text(name, before), parameter_text(name, after)
    return short if short[0] != short[1] else (repr(before), repr(after))


def parameter_text(name: str, value: Any) -> str:
    """Return the *value* of the parameter *name*, formatted for people."""
    unit = unit_of(name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float) and unit:
        return humanised(value, unit)
    return "none" if value is None else str(value)


def _resources(before: Identified, after: Identified) -> Iterator[SegmentChange]:
    for role in sorted({*before.bindings, *after.bindings}):
        old, new = list(before.bindings.get(role, ())), list(after.bindings.get(role, ()))
        if old != new:
            removed = [name for name in old if name not in new]
            added = [name for name in new if name not in old]
            before_names, after_names = (removed, added) if removed and added else (old, new)
            yield SegmentChange(ChangeKind.RESOURCES, role, _listed(before_names), _listed(after_names))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
