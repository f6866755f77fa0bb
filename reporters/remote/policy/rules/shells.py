"""By which shells, transfers and batch systems runs may reach resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from reporters import batch, shells, transfers
from reporters.config import Assignment
from reporters.remote.policy.options import bound_resources
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape, TextShape

# The keys of the rule: the method of a resource, and the names that this version of the reporter knows.
_KINDS: Mapping[str, tuple[str, Callable[[], list[str]]]] = {
    "allow": ("shell", shells.names),
    "transfers": ("transfer", transfers.names),
    "batch": ("batch", batch.names),
}


def _list(method: str, names: Callable[[], list[str]]) -> ListShape:
    def unknown(name: str) -> str:
        return "" if name in names() else f"known are {', '.join(names())}"

    kind = TextShape("[a-z][a-z0-9_]*", f"the name of a {method}", problem=unknown)
    return ListShape(kind, f"a resource may have only these as its {method}")


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {key: _list(method, names) for key, (method, names) in _KINDS.items()},
        description="by which shells, transfers and batch systems runs may reach resources",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # at any time
        for resource in bound_resources(assignment):
            for key, (method, _) in _KINDS.items():
                kind = getattr(resource, method).get("kind")
                if kind not in self._values.get(key, (kind,)):
                    return f"the {method} {kind!r} of {resource.name} is not allowed"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {key: list(kinds) for key, kinds in self._values.items()}
