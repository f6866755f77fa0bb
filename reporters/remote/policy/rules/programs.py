"""Commands that the server may name: plugins of probes, launchers and arguments of batch jobs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import probes
from probes.base import InvalidParameters, UnknownProbe
from probes.common.external_program import ExternalProgramProbe
from probes.common.privileged import parse_settings
from reporters.config import Assignment
from reporters.remote.policy import options
from reporters.remote.policy.rules import Situation
from reporters.remote.policy.shapes import ListShape, ObjectShape, TextShape


class Rule:
    is_lasting = True
    shape = ObjectShape(
        {
            "allow": ListShape(
                TextShape("(.|\n)+", "a command, in which * stands for any text and ? for one character"),
                "every command that the parameter of a probe, a launcher or extra arguments of a batch "
                "system name must match one of these as a whole; * stands for any text, spaces included",
            )
        },
        required=("allow",),
        description="which commands the server may name",
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._allow: tuple[str, ...] = values["allow"]
        self._patterns = [_compiled(pattern) for pattern in self._allow]

    def refusal(self, assignment: Assignment, situation: Situation) -> str:  # noqa: ARG002  # at any time
        for resource in options.bound_resources(assignment):
            unrecognised = options.unrecognised(resource)
            if unrecognised:
                return unrecognised
        for command, where in _commands(assignment):
            if not any(pattern.fullmatch(command) for pattern in self._patterns):
                return f"the command {command!r} ({where}) is not allowed"
        return ""

    def summary(self) -> Mapping[str, Any]:
        return {"allow": list(self._allow)}


def _compiled(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.compile(text, re.DOTALL)


def _commands(assignment: Assignment) -> Iterator[tuple[str, str]]:
    """Yield each command of the run, quoted as for a shell, and the place that names it."""
    for resource in options.bound_resources(assignment):
        for option in options.options(resource, (options.PROGRAM,)):
            words = option.value if isinstance(option.value, (list, tuple)) else [option.value]
            if words:
                yield shlex.join(str(word) for word in words), option.where
    try:
        probe = probes.load(assignment.probe)
    except UnknownProbe:  # the runner refuses it
        return
    where = f"parameter of {assignment.probe}"
    if issubclass(probe, ExternalProgramProbe):
        yield _normal(str(assignment.parameters.get("command", ""))), where
    if "settings" in probe.parameters:
        yield from ((command, where) for command in _setting_commands(assignment.parameters))


def _setting_commands(parameters: Mapping[str, Any]) -> list[str]:
    try:
        factors = parse_settings(str(parameters.get("settings", "")))
    except InvalidParameters:  # the probe refuses them
        return []
    return [shlex.join(command) for factor in factors for command in factor.commands()]


def _normal(command: str) -> str:
    try:
        return shlex.join(shlex.split(command))
    except ValueError:  # a quote is not closed: the probe refuses it
        return command
