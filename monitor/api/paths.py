"""How programs name what they ask about: a metric by itself, a stage or a total; a path by its resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from monitor.api.problems import Refused
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
    """The metric that is meant: one of them says it, or none, which means the whole total."""
    said = [name for name, given in (("metric", metric), ("stage", stage), ("total", total)) if given]
    if len(said) > 1:
        raise Refused(422, "invalid", f"expected one of metric, stage and total, got {' and '.join(said)}")
    if stage:
        return f"stage.{stage}.seconds"
    return TOTALS[total] if total else metric or USUAL_METRIC


def path(bindings: Mapping[str, Sequence[str]]) -> str:
    """The path of what is bound to each role, as the depot writes it."""
    for role, names in bindings.items():
        if not names or not all(names):
            raise Refused(422, "invalid", f"{role}: expected names of resources, got {','.join(names)!r}")
    return checked(path_of(bindings))


def together(names: Sequence[str]) -> str:
    """Resources in whatever roles, as the depot writes them."""
    if not names or not all(names):
        raise Refused(422, "invalid", f"resources: expected their names, got {','.join(names)!r}")
    return checked(",".join(sorted(set(names))))


def checked(text: str) -> str:
    """*text*. Refused: what no name can be."""
    if "\x00" in text:
        raise Refused(422, "invalid", "expected text, got a NUL character")
    if len(text) > MOST_CHARACTERS:
        raise Refused(422, "invalid", f"expected at most {MOST_CHARACTERS} characters, got {len(text)}")
    return text
