"""What differs between two segments of a series, in words: ``file_bytes 1 MB -> 100 MB``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from monitor.units import carried_by, humanised

if TYPE_CHECKING:
    from collections.abc import Iterable


class Kind(StrEnum):
    """What of a series changed."""

    PROBE = "probe"
    PARAMETERS = "parameters"
    RESOURCES = "resources"


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was; *before* and *after* are as people read them."""

    kind: Kind
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


def changes(before: Identified, after: Identified) -> list[Change]:
    """What is different in *after*. Of another probe nothing else is said: its parameters are its own."""
    if before.probe != after.probe:
        return [Change(Kind.PROBE, "probe", _probe(before), _probe(after))]
    return [*_version(before, after), *_parameters(before, after), *_resources(before, after)]


def subjects(found: Iterable[Change]) -> str:
    """What changed, in short: ``its probe and its parameters``."""
    kinds = list(dict.fromkeys(change.kind for change in found))
    *others, last = [f"its {kind}" for kind in kinds]
    return f"{', '.join(others)} and {last}" if others else last


def _probe(one: Identified) -> str:
    return f"{one.probe} {one.probe_version}".strip()


def _version(before: Identified, after: Identified) -> Iterator[Change]:
    if before.probe_version != after.probe_version:
        versions = (one.probe_version or "unknown" for one in (before, after))
        yield Change(Kind.PROBE, f"probe {after.probe}", *versions)


def _parameters(before: Identified, after: Identified) -> Iterator[Change]:
    for name in sorted({*before.parameters, *after.parameters}):
        values = before.parameters.get(name), after.parameters.get(name)
        if values[0] != values[1]:
            yield Change(Kind.PARAMETERS, name, *_told_apart(name, *values))


def _told_apart(name: str, before: Any, after: Any) -> tuple[str, str]:
    """Both with a unit that suits their size, or exactly where that would look the same."""
    short = shown(name, before), shown(name, after)
    return short if short[0] != short[1] else (repr(before), repr(after))


def shown(name: str, value: Any) -> str:
    """The *value* of the parameter *name* as people read it."""
    unit = carried_by(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and unit:
        return humanised(value, unit)
    return "none" if value is None else str(value)


def _resources(before: Identified, after: Identified) -> Iterator[Change]:
    for role in sorted({*before.bindings, *after.bindings}):
        old, new = list(before.bindings.get(role, ())), list(after.bindings.get(role, ()))
        if old != new:
            gone, come = (
                [name for name in one if name not in other] for one, other in ((old, new), (new, old))
            )
            yield Change(Kind.RESOURCES, role, *map(_listed, (gone, come) if gone and come else (old, new)))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
