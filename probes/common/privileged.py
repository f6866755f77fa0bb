"""Privileged factors of a sweep, such as an I/O scheduler: set by the operator's commands, and restored.

No shell runs the commands, and each level is read back. The levels before the sweep are remembered before
the first change; the cleanup sets them again, and where a run was killed, the next run of the series.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from probes.base import InvalidParameters, Parameter, ProbeFailed
from probes.grid import Grid

LEVEL = "{level}"
SETTINGS = Parameter(
    "",
    "privileged factors, as JSON: {NAME: {levels: [TEXT, ...], set: COMMAND with {level}, read: COMMAND}}; "
    "the operator's commands, quoted as for a shell",
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LEVEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_+-]{0,39}")
_CURRENT = re.compile(r"\[([^\]\s]+)\]")  # as in "none [bfq] kyber"
_SECONDS = 60.0
_KEYS = {"levels", "set", "read"}


@dataclass(frozen=True)
class PrivilegedFactor:
    """A factor *name* with its *levels*. *setting* sets the level, which *reading* prints."""

    name: str
    levels: tuple[str, ...]
    setting: tuple[str, ...]
    reading: tuple[str, ...]

    def set_to(self, level: str) -> list[str]:
        return [word.replace(LEVEL, level) for word in self.setting]

    def commands(self) -> Iterator[list[str]]:
        """Yield every command that a sweep runs for this factor."""
        yield list(self.reading)
        yield from map(self.set_to, self.levels)


def parse_settings(text: str) -> list[PrivilegedFactor]:
    """Return the factors in the parameter ``settings``, by name.

    Raises:
        InvalidParameters: *text* is not as ``SETTINGS`` says.
    """
    if not text.strip():
        return []
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidParameters(f"settings: expected JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidParameters(f"settings: expected an object, got {text[:80]!r}")
    return [_factor(name, document[name]) for name in sorted(document)]


def _factor(name: str, described: Any) -> PrivilegedFactor:
    place = f"settings: {name}"
    if not _NAME.fullmatch(name):
        raise InvalidParameters(f"{place}: expected a name of a-z, 0-9 and _ with at most 40 characters")
    if not isinstance(described, dict) or set(described) != _KEYS:
        raise InvalidParameters(f"{place}: expected an object with levels, set and read")
    levels = described["levels"]
    if not isinstance(levels, list) or not levels or len(set(map(str, levels))) < len(levels):
        raise InvalidParameters(f"{place}: levels: expected different texts, got {levels!r}")
    for level in levels:
        if not isinstance(level, str) or not _LEVEL.fullmatch(level):
            raise InvalidParameters(
                f"{place}: levels: expected a text of letters, digits and _+-, got {level!r}"
            )
    setting, reading = (_words(f"{place}: {key}", described[key]) for key in ("set", "read"))
    if not any(LEVEL in word for word in setting[1:]):
        raise InvalidParameters(f"{place}: set: expected an argument with {LEVEL}")
    return PrivilegedFactor(name, tuple(levels), setting, reading)


def _words(place: str, command: Any) -> tuple[str, ...]:
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError as error:
        raise InvalidParameters(f"{place}: {error} in {command!r}") from None
    if not words or not words[0]:
        raise InvalidParameters(f"{place}: expected a command, got {command!r}")
    return tuple(words)


class PrivilegedSettings:
    """The present levels of *factors* at *target*. *remember* keeps the levels to restore, by factor."""

    def __init__(
        self,
        grid: Grid,
        target: str,
        factors: Sequence[PrivilegedFactor],
        remember: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._grid, self._target = grid, target
        self._factors = {factor.name: factor for factor in factors}
        self._remember = remember
        self._original: dict[str, str] = {}
        self._present: dict[str, str] = {}

    def begin(self, left_by_a_killed_run: Mapping[str, str]) -> None:
        """Restore what a killed run has left, then try every level once, and remember the present ones.

        Raises:
            ProbeFailed: a level cannot be read or set; the message names the factor, the level and the error.
        """
        for name in sorted(left_by_a_killed_run.keys() - self._factors.keys()):
            level = left_by_a_killed_run[name]
            self._grid.log(
                f"{name} was {level} before a run that was killed; settings has it no more: it stays changed",
                "warning",
            )
        self._original = {
            name: level for name, level in left_by_a_killed_run.items() if name in self._factors
        }
        if self._original:
            self._grid.log(f"restoring what a killed run has left: {_shown(self._original)}")
            self.restore()
        if not self._factors:
            return
        self._present = {name: self._read(factor) for name, factor in self._factors.items()}
        self._original = dict(self._present)
        self._remember(self._original)
        for name, factor in self._factors.items():
            for level in factor.levels:
                self.apply({name: level})

    def apply(self, levels: Mapping[str, str]) -> None:
        """Set each factor to its level in *levels*, unless it has it, and read it back."""
        for name, level in levels.items():
            if name in self._factors and self._present.get(name) != level:
                self._set(self._factors[name], level)

    def restore(self) -> None:
        """Set all factors to their original levels. What cannot be restored stays remembered.

        Raises:
            ProbeFailed: a level cannot be set or does not read back; the other factors have been restored.
        """
        if not self._original:
            return
        attempts = [(name, self._restored(name, level)) for name, level in self._original.items()]
        failures = {name: error for name, error in attempts if error is not None}
        self._original = {name: self._original[name] for name in failures}
        self._present = {}
        self._remember(self._original)
        if failures:
            raise next(iter(failures.values()))

    def _restored(self, name: str, level: str) -> ProbeFailed | None:
        try:
            if self._read(self._factors[name]) != level:
                self._set(self._factors[name], level)
        except ProbeFailed as error:
            return error
        return None

    def _set(self, factor: PrivilegedFactor, level: str) -> None:
        self._present.pop(factor.name, None)
        self._grid.shell(self._target).check(
            factor.set_to(level), timeout_seconds=_SECONDS, doing=f"set {factor.name} to {level}"
        )
        present = self._read(factor)
        if present != level:
            raise ProbeFailed(
                f"cannot set {factor.name} to {level} at {self._target}: no error, "
                f"but {factor.reading[0]} reads {present}",
                resource=self._target,
            )
        self._present[factor.name] = level

    def _read(self, factor: PrivilegedFactor) -> str:
        text = self._grid.shell(self._target).check(
            list(factor.reading), timeout_seconds=_SECONDS, doing=f"read {factor.name}"
        )
        chosen = _CURRENT.search(text)
        present = chosen[1] if chosen else text.strip()
        if not _LEVEL.fullmatch(present):
            raise ProbeFailed(
                f"cannot read {factor.name} at {self._target}: expected a level, got {text[:80]!r}",
                resource=self._target,
            )
        return present


def _shown(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {level}" for name, level in levels.items())
