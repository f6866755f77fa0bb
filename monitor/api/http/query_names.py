"""Names in queries: a metric by its name, stage or total; a path by its resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from monitor.api.http.problems import Refused
from monitor.models.current_segment import path_of

Total = Literal["i", "ii", "iii"]
TOTALS: Mapping[str, str] = {
    "i": "total.seconds",
    "ii": "total_essential.seconds",
    "iii": "total_core.seconds",
}
USUAL_METRIC = TOTALS["i"]
MOST_CHARACTERS = 10_000


def metric_of(metric: str, stage: str, total: Total | None) -> str:
    """Return the name of the metric given by name, stage or total; by default the whole total."""
    given = [name for name, value in (("metric", metric), ("stage", stage), ("total", total)) if value]
    if len(given) > 1:
        raise Refused(422, "invalid", f"expected one of metric, stage and total, got {' and '.join(given)}")
    if stage:
        return f"stage.{stage}.seconds"
    return TOTALS[total] if total else metric or USUAL_METRIC


def path(bindings: Mapping[str, Sequence[str]]) -> str:
    """Return *bindings* (resources by role) as the depot writes a path."""
    for role, names in bindings.items():
        if not names or not all(names):
            raise Refused(422, "invalid", f"{role}: expected names of resources, got {','.join(names)!r}")
    return checked(path_of(bindings))


def resource_set(names: Sequence[str]) -> str:
    """Return the resources of a path, in any roles, as the depot writes them."""
    if not names or not all(names):
        raise Refused(422, "invalid", f"resources: expected their names, got {','.join(names)!r}")
    return checked(",".join(sorted(set(names))))


def checked(text: str) -> str:
    """Return *text*. Raises Refused if it cannot be a name."""
    if "\x00" in text:
        raise Refused(422, "invalid", "expected text, got a NUL character")
    if len(text) > MOST_CHARACTERS:
        raise Refused(422, "invalid", f"expected at most {MOST_CHARACTERS} characters, got {len(text)}")
    return text
