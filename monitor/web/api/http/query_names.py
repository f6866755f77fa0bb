"""Names in queries: a metric by its name, stage or total; a path by its resources."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

import probes
from monitor.models.current_segment import path_of
from monitor.web.api.http.problems import Refused

Total = Literal["total", "essential", "core"]
TOTALS: Mapping[str, str] = {
    "total": "total.seconds",
    "essential": "total_essential.seconds",
    "core": "total_core.seconds",
}
USUAL_METRIC = TOTALS["total"]
MOST_CHARACTERS = 10_000
MOST_ROLES = 50
RoleTexts = Annotated[list[Annotated[str, Field(max_length=MOST_CHARACTERS)]], Field(max_length=MOST_ROLES)]
ROLE = (
    "A role and its resources, in the order of the series: `ring:ncsa-login,sdsc-login`; one for each role."
)
_ROLES = frozenset(role for name in probes.names() for role in probes.load(name).roles)


def metric_of(metric: str, stage: str, total: Total | None) -> str:
    """Return the name of the metric that the request gives by name, stage or total.

    The default is the total of all stages.
    """
    given = [name for name, value in (("metric", metric), ("stage", stage), ("total", total)) if value]
    if len(given) > 1:
        raise Refused(422, "invalid", f"expected one of metric, stage and total, got {' and '.join(given)}")
    if stage:
        return f"stage.{stage}.seconds"
    return TOTALS[total] if total else metric or USUAL_METRIC


def roles_of(application: str) -> Collection[str]:
    """Return the roles of the probe *application*; those of all probes if there is none of this name."""
    return probes.load(application).roles if application in probes.names() else _ROLES


def resources_by_role(texts: Sequence[str], known: Collection[str]) -> dict[str, list[str]]:
    """Return the resources of each role that *texts* give as ``role:resource,resource``.

    Raises:
        Refused: a text is not of this form, or its role is repeated or none of *known*.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        role, _, names = text.partition(":")
        if not (role and names):
            expected = "expected a role and its resources, such as compute:alpha,beta"
            raise Refused(422, "invalid", f"role: {expected}, got {text[:100]!r}")
        if role not in known:
            raise Refused(422, "invalid", f"role: there is no role {role[:100]!r}", known=sorted(known))
        if role in found:
            raise Refused(422, "invalid", f"role: {role} is repeated; separate its resources by commas")
        found[role] = names.split(",")
    return found


def path(bindings: Mapping[str, Sequence[str]]) -> str:
    """Return the path of *bindings* (resources by role) in the form that the depot stores."""
    for role, names in bindings.items():
        if not names or not all(names):
            raise Refused(422, "invalid", f"{role}: expected names of resources, got {','.join(names)!r}")
    return checked(path_of(bindings))


def resource_set(names: Sequence[str]) -> str:
    """Return the distinct *names* of a path's resources, sorted, in the form that the depot stores."""
    if not names or not all(names):
        raise Refused(422, "invalid", f"resources: expected their names, got {','.join(names)!r}")
    return checked(",".join(sorted(set(names))))


def checked(text: str) -> str:
    """Return *text*. Raises Refused if *text* cannot be a name."""
    if "\x00" in text:
        raise Refused(422, "invalid", "expected text, got a NUL character")
    if len(text) > MOST_CHARACTERS:
        raise Refused(422, "invalid", f"expected at most {MOST_CHARACTERS} characters, got {len(text)}")
    return text
