"""The contract of a probe. ``grid.py`` has the operations that a probe may perform on sites.

A probe is a class named ``Probe`` in a file of its own in this folder. The class declares roles, parameters
and stages. Every stage is a method of the class with the stage's name; the runner calls these methods in the
order of the stages. A method returns measurements or raises an exception. The runner (``reporters.run``) is
responsible for timing, logging, limits and the outcome.

Errors, and whether a repeated run may succeed::

    ProbeError
    |-- UnknownProbe        there is no probe of this name                             no
    |-- InvalidParameters   a parameter or binding that the probe does not accept      no
    |-- NoData              the probe does not apply here: outcome ``no_data``         no
    `-- ProbeFailed         an operation on the grid failed: outcome ``failed``        yes
        `-- OutOfTime       the run reached its time limit: outcome ``timed_out``      yes

Any other exception in a stage is a bug of gridcast: outcome ``broken``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Callable, ClassVar, Protocol, TypeVar, Union

from probes.grid import Grid

Value = Union[int, float, str, bool]
TYPES_IN_WORDS = {bool: "true or false", float: "a number", int: "an integer", str: "a text"}
Item = TypeVar("Item")
Result = TypeVar("Result")


class ProbeError(Exception):
    """Base class of the errors of probes."""


class UnknownProbe(ProbeError, LookupError):
    """There is no probe of this name."""


class InvalidParameters(ProbeError, ValueError):
    """The probe does not accept a parameter or a binding."""


class NoData(ProbeError):
    """The probe does not apply to the resources of the run."""


class ProbeFailed(ProbeError):
    """An operation on the grid failed. The message names the operation, the resource and the error."""

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
    """The run reached its time limit during an operation."""


@dataclass(frozen=True)
class Stage:
    """One timed step of a run; *category* is one of ``probes.CATEGORIES``."""

    name: str
    category: str


@dataclass(frozen=True)
class Measurement:
    """One number measured in a run.

    *name* is the name of the metric, *unit* is written like "bytes_per_second".
    """

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Role:
    """A role that resources have in a probe. A run binds *minimum* to *maximum* resources to each role."""

    minimum: int
    maximum: int
    description: str

    def check(self, name: str, resources: Sequence[str]) -> None:
        """Raise InvalidParameters unless all *resources* differ and the role accepts their number."""
        if not self.minimum <= len(resources) <= self.maximum:
            raise InvalidParameters(
                f"role {name!r} needs {self.minimum} to {self.maximum} resources, got {len(resources)}"
            )
        duplicates = sorted({resource for resource in resources if list(resources).count(resource) > 1})
        if duplicates:
            raise InvalidParameters(f"role {name!r} names {duplicates[0]!r} more than once")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a probe.

    A number must lie in [minimum, maximum]. A text must be one of *choices*, unless *choices* is empty.
    """

    default: Value
    description: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str, ...] = ()

    def checked(self, name: str, value: Value) -> Value:
        """Return *value*, converted to float if it is an int and the default is a float.

        Raises:
            InvalidParameters: *value* does not have the default's type, or is outside the range or *choices*.
        """
        expected = type(self.default)
        if expected is float and type(value) is int:
            value = float(value)
        if type(value) is not expected:
            raise InvalidParameters(f"{name}: expected {TYPES_IN_WORDS[expected]}, got {value!r}")
        if isinstance(value, (int, float)) and not self.minimum <= value <= self.maximum:
            raise InvalidParameters(f"{name}: expected {self._range()}, got {value!r}")
        if self.choices and value not in self.choices:
            raise InvalidParameters(f"{name}: expected one of {', '.join(self.choices)}, got {value!r}")
        return value

    def _range(self) -> str:
        if self.maximum == math.inf:
            return f"at least {self.minimum:g}"
        return (
            f"at most {self.maximum:g}"
            if self.minimum == -math.inf
            else f"{self.minimum:g} to {self.maximum:g}"
        )


@dataclass(frozen=True)
class RunPlan:
    """The input of one run.

    Attributes:
        bindings: names of the resources of each role, in order.
        parameters: the checked value of every parameter of the probe.
    """

    bindings: Mapping[str, Sequence[str]]
    parameters: Mapping[str, Value]

    def resource(self, role: str) -> str:
        """Return the first resource of *role*."""
        return self.bindings[role][0]

    def integer(self, name: str) -> int:
        return int(self.parameters[name])

    def text(self, name: str) -> str:
        return str(self.parameters[name])

    def all_resources(self) -> list[str]:
        """Return the distinct resources of all roles, in order of first occurrence."""
        return list(dict.fromkeys(name for names in self.bindings.values() for name in names))


class Probe(Protocol):
    """The contract of a probe; ``tests/contracts/test_probes.py`` tests every probe against it."""

    kind: ClassVar[str]  # "grid" or "application"
    version: ClassVar[str]
    summary: ClassVar[str]
    roles: ClassVar[Mapping[str, Role]]
    parameters: ClassVar[Mapping[str, Parameter]]
    stages: ClassVar[Sequence[Stage]]  # the last is "cleanup", which is run after a failure, too
    # Parameters of a run that takes a second or two when all resources are directories of one host.
    trial: ClassVar[Mapping[str, Value]]

    def __init__(self, grid: Grid, plan: RunPlan) -> None: ...


def checked_plan(
    probe: type[Probe], bindings: Mapping[str, Sequence[str]], parameters: Mapping[str, Value]
) -> RunPlan:
    """Return the plan with *bindings* and *parameters*, and defaults for missing parameters.

    The declarations of *probe* determine which bindings and parameters are valid.

    Raises:
        InvalidParameters: a role or parameter is unknown, missing or has an invalid value.
    """
    _refuse_unknown("role", bindings, probe.roles)
    for name, role in probe.roles.items():
        role.check(name, bindings.get(name, ()))
    complete = checked_parameters(probe, parameters)
    return RunPlan(bindings={name: tuple(names) for name, names in bindings.items()}, parameters=complete)


def checked_parameters(probe: type[Probe], parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the value or default of every parameter of *probe*.

    Raises:
        InvalidParameters: a parameter is unknown or has an invalid value.
    """
    _refuse_unknown("parameter", parameters, probe.parameters)
    return {
        name: parameter.checked(name, parameters.get(name, parameter.default))
        for name, parameter in probe.parameters.items()
    }


def _refuse_unknown(kind: str, values: Mapping[str, object], declared: Mapping[str, object]) -> None:
    unknown = sorted(set(values) - set(declared))
    if unknown:
        raise InvalidParameters(f"unknown {kind} {unknown[0]!r}; known are {', '.join(sorted(declared))}")


def in_parallel(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call *work* for all *items* in concurrent threads and return the results in order.

    If some calls raise, the exception for the first such item is raised after all calls have ended.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # a megabyte, which agents do without

    arguments = list(items)
    if not arguments:
        return []
    with ThreadPoolExecutor(max_workers=len(arguments)) as pool:
        futures = [pool.submit(work, argument) for argument in arguments]
    return [future.result() for future in futures]
