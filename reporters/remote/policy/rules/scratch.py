"""Directories in which runs may work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporters.config import Assignment
from reporters.remote.policy.options import bound_resources
from reporters.remote.policy.paths import PATH, DirectoryList
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {"allow": ListShape(PATH, "the scratch directory of a resource must be one of these or below one")},
        required=("allow",),
        description="where runs may write",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._directories = DirectoryList(values["allow"])

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # at any time
        for resource in bound_resources(assignment):
            if not self._directories.contains(resource.scratch):
                return f"the scratch directory {resource.scratch!r} of {resource.name} is not allowed"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {"allow": list(self._directories.paths)}
