"""Files of the reporter's host that options may name: configurations, keys, proxies, tokens, PATH."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporters.config import Assignment, ResourceConfig
from reporters.remote.policy import options
from reporters.remote.policy.paths import PATH, DirectoryList
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {
            "allow": ListShape(
                PATH,
                "every file that an option of a resource names (ssh configurations, keys, proxies, tokens, "
                "authorities, directories of a PATH) must be one of these or below one",
            )
        },
        required=("allow",),
        description="which configurations and credentials the server may name",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._paths = DirectoryList(values["allow"])

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # at any time
        return next(filter(None, map(self._problem, options.bound_resources(assignment))), "")

    def _problem(self, resource: ResourceConfig) -> str:
        unrecognised = options.unrecognised(resource)
        if unrecognised:
            return unrecognised
        for option in options.options(resource, options.FILES):
            is_list = option.meaning == options.SEARCH_PATH and isinstance(option.value, str)
            for path in option.value.split(":") if is_list else [option.value]:
                if not self._paths.contains(path):
                    return f"the file {path!r} ({option.where}) is not allowed"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {"allow": list(self._paths.paths)}
