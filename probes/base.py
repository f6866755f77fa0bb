"""What a probe is; what it may do to sites is in ``grid.py``.

A probe is a class named ``Probe`` in a file of its own in this folder. It names its roles, parameters and
stages; for every stage it has a method of the stage's name, called in order. A method returns the metrics
that it measured, or raises. The runner (``reporters.run``) owns time, logging, limits and the outcome.

Errors::

    ProbeError
    |-- UnknownProbe        no such file in probes/                                    for good
    |-- InvalidParameters   a parameter or binding that the probe does not accept      for good
    |-- NoData              the probe does not apply here: outcome ``no_data``         for good
    `-- ProbeFailed         the grid did not do it: outcome ``failed``                 again
        `-- OutOfTime       the run's limit was reached: outcome ``timed_out``         again

Anything else that escapes a stage is our own bug: outcome ``broken``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, ClassVar, Protocol, TypeVar, Union

from probes.grid import Grid

CATEGORIES = ("setup", "transfer", "queue", "compute", "cleanup")

Value = Union[int, float, str, bool]
Item = TypeVar("Item")
Result = TypeVar("Result")


class ProbeError(Exception):
    """Root of what goes wrong around a probe."""


class UnknownProbe(ProbeError, LookupError):
    """No probe of that name."""


class InvalidParameters(ProbeError, ValueError):
    """A parameter or a binding that the probe does not accept."""


class NoData(ProbeError):
    """The probe does not apply here."""


class ProbeFailed(ProbeError):
    """The grid did not do what it was asked. Says what was tried, on what, what came back."""

    def __init__(
        self,
        message: str,
        *,
        resource: str | None = None,
        exit_status: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.resource = resource
        self.exit_status = exit_status
        self.stderr_tail = stderr_tail


class OutOfTime(ProbeFailed):
    """The run's limit was reached while this was going on."""


@dataclass(frozen=True)
class Stage:
    """One timed step; *category* is one of ``CATEGORIES``."""

    name: str
    category: str


@dataclass(frozen=True)
class Measurement:
    """One number of a run. *unit* is an SI base unit ("seconds", "bytes", "bytes_per_second", "count")."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Role:
    """What a probe needs resources for: between *minimum* and *maximum* of them, in order."""

    minimum: int
    maximum: int
    description: str

    def check(self, name: str, resources: Sequence[str]) -> None:
        """Raise InvalidParameters unless *resources* are as many as needed and all different."""
        if not self.minimum <= len(resources) <= self.maximum:
            raise InvalidParameters(
                f"role {name!r} needs {self.minimum} to {self.maximum} resources, got {len(resources)}"
            )
        twice = sorted({resource for resource in resources if list(resources).count(resource) > 1})
        if twice:
            raise InvalidParameters(f"role {name!r} names {twice[0]!r} more than once")


@dataclass(frozen=True)
class Parameter:
    """One adjustable number or text of a probe.

    Numbers must lie in [minimum, maximum], texts be one of *choices* where there are any.
    """

    default: Value
    description: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()

    def checked(self, name: str, value: Value) -> Value:
        """Return *value*, or raise InvalidParameters saying what was expected."""
        expected = type(self.default)
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            raise InvalidParameters(f"{name}: expected {expected.__name__}, got {value!r}")
        if isinstance(value, (int, float)) and not self.minimum <= value <= self.maximum:
            raise InvalidParameters(f"{name}: {value!r} is outside {self.minimum:g} to {self.maximum:g}")
        if self.choices and value not in self.choices:
            raise InvalidParameters(f"{name}: {value!r} is none of {', '.join(self.choices)}")
        return value


@dataclass(frozen=True)
class RunPlan:
    """What a probe is to do: resources by role, in order, and its parameters, complete and checked."""

    bindings: Mapping[str, Sequence[str]]
    parameters: Mapping[str, Value]

    def resource(self, role: str) -> str:
        return self.bindings[role][0]

    def integer(self, name: str) -> int:
        return int(self.parameters[name])

    def text(self, name: str) -> str:
        return str(self.parameters[name])

    def all_resources(self) -> list[str]:
        """Every resource once, in the order of first mention."""
        return list(dict.fromkeys(name for names in self.bindings.values() for name in names))


class Probe(Protocol):
    """The contract of a probe. ``tests/contracts/test_probes.py`` runs it over every file in this folder."""

    kind: ClassVar[str]  # "grid" or "application"
    version: ClassVar[str]
    summary: ClassVar[str]
    roles: ClassVar[Mapping[str, Role]]
    parameters: ClassVar[Mapping[str, Parameter]]
    stages: ClassVar[Sequence[Stage]]  # each has a method of its name; "cleanup" is always run
    # Parameters of a run that takes a second or two over directories of one host.
    trial: ClassVar[Mapping[str, Value]]

    def __init__(self, grid: Grid, plan: RunPlan) -> None: ...


def checked_plan(
    probe: type[Probe], bindings: Mapping[str, Sequence[str]], parameters: Mapping[str, Value]
) -> RunPlan:
    """Fill in defaults and check everything against what *probe* accepts.

    Raises:
        InvalidParameters: an unknown, missing or unfit role or parameter, named with what was expected.
    """
    _no_others("role", bindings, probe.roles)
    for name, role in probe.roles.items():
        role.check(name, bindings.get(name, ()))
    complete = checked_parameters(probe, parameters)
    return RunPlan(bindings={name: tuple(names) for name, names in bindings.items()}, parameters=complete)


def checked_parameters(probe: type[Probe], parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Every parameter of *probe*, as given or its default. Raises InvalidParameters."""
    _no_others("parameter", parameters, probe.parameters)
    return {
        name: parameter.checked(name, parameters.get(name, parameter.default))
        for name, parameter in probe.parameters.items()
    }


def _no_others(what: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidParameters(f"unknown {what} {unknown[0]!r}; known are {', '.join(sorted(known))}")


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Do *work* on all *items* at once; results in order. Waits for all, then raises the first failure."""
    todo = list(items)
    if not todo:
        return []
    with ThreadPoolExecutor(max_workers=len(todo)) as pool:
        futures = [pool.submit(work, item) for item in todo]
    return [future.result() for future in futures]
