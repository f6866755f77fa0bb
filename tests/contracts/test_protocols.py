"""Every plug-in has what the contract of its kind declares: attributes of their types, and methods."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from inspect import Parameter
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

import pytest
from pydantic import ConfigDict, InstanceOf, TypeAdapter, ValidationError

import probes
from forecasting import commands as forecasting_commands
from forecasting import methods
from forecasting.base import ForecastMethod
from monitor.analysis.alerts import channels, conditions, reporter_conditions
from monitor.analysis.alerts.channels.base import Notifier
from monitor.analysis.alerts.conditions.base import AlertCondition
from monitor.analysis.alerts.reporter_conditions.base import ReporterCondition
from monitor.depot.samples import formats as exports
from monitor.depot.samples.formats.base import Export
from monitor.runs.imports import formats as imports
from monitor.runs.imports.formats.base import Importer
from monitor.runs.maintenance import feeds as maintenance_feeds
from monitor.runs.maintenance.feeds.base import MaintenanceFeed
from probes.base import Probe
from reporters import batch, shells, transfers
from reporters.base import BatchSystem, FileTransfer, ResourceShell
from reporters.remote import commands as remote_commands
from reporters.remote import services, signing
from reporters.remote.commands import RemoteCommand
from reporters.remote.policy import rules
from reporters.remote.policy.rules import PolicyRule
from reporters.remote.policy.shapes import ObjectShape
from reporters.remote.service import AgentService
from reporters.remote.signing.base import SigningMethod

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS: dict[ModuleType, type] = {
    batch: BatchSystem,
    channels: Notifier,
    conditions: AlertCondition,
    exports: Export,
    forecasting_commands: forecasting_commands.Command,
    imports: Importer,
    maintenance_feeds: MaintenanceFeed,
    methods: ForecastMethod,
    probes: Probe,
    remote_commands: RemoteCommand,
    reporter_conditions: ReporterCondition,
    rules: PolicyRule,
    services: AgentService,
    shells: ResourceShell,
    signing: SigningMethod,
    transfers: FileTransfer,
}
# Their plug-ins are a value of a checked type, or a function; these are no classes.
PACKAGES = {"forecasting", "monitor", "probes", "reporters"}
VALUES = {
    "monitor.web.api",
    "monitor.runs.ledger.admission.rules",
    "monitor.web.pages",
    "monitor.testbed.storage.profiles",
    "monitor.testbed.weather.profiles",
}
PLUG_INS = [
    pytest.param(contract, folder.load, name, id=f"{folder.__name__}.{name}")
    for folder, contract in CONTRACTS.items()
    for name in folder.names()
]


@cache
def attributes(contract: type) -> dict[str, tuple[TypeAdapter[Any], bool]]:
    """Return the type of each attribute that *contract* declares, and if instances may have their own."""
    declared = get_type_hints(contract, localns={"ObjectShape": ObjectShape})
    declared |= {
        name: get_type_hints(each.fget)["return"]
        for name, each in inspect.getmembers(contract, lambda member: isinstance(member, property))
    }
    return {
        name: (
            adapter(get_args(hint)[0] if get_origin(hint) is ClassVar else hint),
            get_origin(hint) is not ClassVar,
        )
        for name, hint in declared.items()
        if not name.startswith("_")
    }


def adapter(declared: Any) -> TypeAdapter[Any]:
    if inspect.isclass(declared) and get_origin(declared) is None:
        return TypeAdapter(InstanceOf[declared])
    return TypeAdapter(declared, config=ConfigDict(arbitrary_types_allowed=True, strict=True))


@cache
def methods_of(contract: type) -> dict[str, list[str]]:
    """Return the parameters of each method that *contract* declares."""
    return {
        name: [each.lstrip("_") for each in inspect.signature(method).parameters if each != "self"]
        for name, method in inspect.getmembers(contract, inspect.isfunction)
        if method.__module__ == contract.__module__ and (name == "__init__" or not name.startswith("_"))
    }


def takes(method: Callable[..., Any], names: list[str]) -> bool:
    """Return whether *method* takes the parameters *names* and needs no other, ``__init__`` but options."""
    parameters = list(inspect.signature(method).parameters.values())
    if any(each.kind is Parameter.VAR_POSITIONAL for each in parameters):
        return True
    optional = {Parameter.VAR_KEYWORD, *([Parameter.KEYWORD_ONLY] if method.__name__ == "__init__" else [])}
    needed = {
        each.name for each in parameters if each.default is Parameter.empty and each.kind not in optional
    }
    known = {each.name.lstrip("_") for each in parameters}
    return {name.lstrip("_") for name in needed - {"self"}} <= {*names} <= known


def sets(plug_in: type, name: str) -> bool:
    """Return whether instances of *plug_in* have the attribute *name*, which the class has not."""
    return any(
        re.search(rf"\bself\.{name}\b[^=\n]*=", inspect.getsource(each))
        for each in plug_in.__mro__
        if each.__module__.partition(".")[0] in PACKAGES
    )


def faults(contract: type, plug_in: Any) -> Iterator[str]:
    """Yield what *plug_in* lacks of *contract*."""
    for name, (declared, may_be_of_instance) in attributes(contract).items():
        value = getattr(plug_in, name, None)
        if may_be_of_instance and (isinstance(value, property) or (value is None and sets(plug_in, name))):
            continue
        if not hasattr(plug_in, name):
            yield f"has no {name}"
            continue
        try:
            declared.validate_python(value)
        except ValidationError as error:
            yield f"{name} is {value!r}: {error.errors()[0]['msg']}"
    for name, parameters in methods_of(contract).items():
        own = getattr(plug_in, name, None)
        if not callable(own):
            yield f"has no method {name}"
        elif own is not object.__init__ and not takes(own, parameters):
            yield f"{name}{inspect.signature(own)} does not take ({', '.join(parameters)})"


@pytest.mark.parametrize(("contract", "load", "name"), PLUG_INS)
def test_a_plug_in_has_what_its_contract_declares(
    contract: type, load: Callable[[str], Any], name: str
) -> None:
    assert list(faults(contract, load(name))) == []


def test_every_registry_has_its_contract_in_the_table() -> None:
    found = set()
    for folder in PACKAGES:
        for file in (ROOT / folder).rglob("__init__.py"):
            text = file.read_text(encoding="utf-8")
            if re.search(r"PluginRegistry\[|^def load\(name: str\)", text, re.MULTILINE):
                found.add(".".join(file.parent.relative_to(ROOT).parts))
    assert found == {each.__name__ for each in CONTRACTS} | VALUES


def test_an_attribute_or_method_that_is_missing_or_of_another_type_is_found() -> None:
    class Contract(Protocol):
        label: ClassVar[str]
        least: ClassVar[int]

        @property
        def needed(self) -> int: ...

        def judge(self, runs: list[int], now: float) -> bool: ...

    class Planted:
        least = "1"

        def judge(self, runs: list[int]) -> bool:
            return not runs

    assert [each.partition(" is ")[0] for each in faults(Contract, Planted)] == [
        "has no label",
        "least",
        "has no needed",
        "judge(self, runs: 'list[int]') -> 'bool' does not take (runs, now)",
    ]
