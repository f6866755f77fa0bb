"""Hosts to which runs may connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reporters.config import Assignment, ResourceConfig
from reporters.remote.policy import options
from reporters.remote.policy.hosts import (
    HOST_PATTERN,
    Address,
    HostPattern,
    UnknownHost,
    is_allowed,
    parse_contact,
    parse_hops,
    parse_host,
)
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {
            "allow": ListShape(
                HOST_PATTERN,
                "every host that a shell, a transfer or the address of a resource names must be one of these",
            )
        },
        required=("allow",),
        description="where runs may connect to",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._allow: tuple[str, ...] = values["allow"]
        self._patterns = [HostPattern(pattern) for pattern in self._allow]

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # at any time
        return next(filter(None, map(self._problem, options.bound_resources(assignment))), "")

    def _problem(self, resource: ResourceConfig) -> str:
        unrecognised = options.unrecognised(resource)
        if unrecognised:
            return unrecognised
        named = list(options.options(resource, options.ADDRESSES))
        if resource.address != "":
            named.append(options.NamedOption(f"address of {resource.name}", options.HOST, resource.address))
        for option in named:
            try:
                refused = [host for host in _hosts(option) if not is_allowed(host, self._patterns)]
            except UnknownHost as error:
                return f"the {option.where}, {error}, is not recognised as a host"
            if refused:
                return f"the destination {refused[0]} ({option.where}) is not allowed"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {"allow": list(self._allow)}


def _hosts(option: options.NamedOption) -> list[str | Address]:
    if option.meaning == options.HOPS:
        return parse_hops(option.value)
    return [parse_contact(option.value) if option.meaning == options.CONTACT else parse_host(option.value)]
