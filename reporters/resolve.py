"""From what a resource says of itself to its shell, transfer and batch system."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from probes.base import InvalidParameters
from reporters import batch, shells, transfers
from reporters.base import BatchSystem, CannotCopy, End, FileTransfer, ResourceShell, options_of
from reporters.config import ResourceConfig
from reporters.options import invalid_option
from reporters.registry import UnknownPlugin

Loaded = TypeVar("Loaded")
_signature = functools.cache(
    inspect.signature
)  # every run asks for several; mypy takes no class for hashable


def check(resource: ResourceConfig) -> None:
    """Raise InvalidParameters unless *resource* can be reached as it says. Nothing is connected."""
    if not resource.scratch.startswith("/"):
        raise InvalidParameters(f"resource {resource.name}: scratch {resource.scratch!r} is not absolute")
    shell = shell_of(resource, "")
    end = End(resource, shell)
    transfer_between(end, end)
    batch_of(resource, shell)


def option_types(way: str, kind: str) -> Mapping[str, str]:
    """The options of *kind* of a *way* (shell, transfer, batch), each with its type. Raises UnknownPlugin."""
    if way == "transfer":
        return transfers.load(kind).option_types
    made: type[Any] = shells.load(kind) if way == "shell" else batch.load(kind)
    parameters = _signature(made).parameters.values()  # type: ignore[arg-type]
    return {one.name: one.annotation for one in parameters if one.kind is one.KEYWORD_ONLY}


def shell_of(resource: ResourceConfig, label: str) -> ResourceShell:
    """The shell of *resource*, not connected yet. Raises InvalidParameters."""
    return _made(resource, "shell", resource.shell, shells.load, resource.name, label)


def batch_of(resource: ResourceConfig, shell: ResourceShell) -> BatchSystem:
    """The batch system of *resource*. Raises InvalidParameters."""
    return _made(resource, "batch", resource.batch, batch.load, shell)


def transfer_between(source: End, target: End) -> FileTransfer:
    """What copies from *source* to *target*. Raises InvalidParameters; CannotCopy for two kinds."""
    kinds = [end.resource.transfer.get("kind") for end in (source, target)]
    if kinds[0] != kinds[1]:
        raise CannotCopy(
            f"cannot copy from {source.resource.name} to {target.resource.name}: "
            f"one has transfer {kinds[0]!r}, the other {kinds[1]!r}",
            resource=target.resource.name,
        )
    transfer = _loaded(target.resource, "transfer", kinds[0], transfers.load)
    for end in (source, target):
        _refuse_unfit_options(end, transfer.option_types)
    return transfer(source, target)


def _refuse_unfit_options(end: End, types: Mapping[str, str]) -> None:
    unknown = sorted(end.options.keys() - types.keys())
    if unknown:
        known = ", ".join(sorted(types)) or "none"
        why = f"unknown option {unknown[0]!r}; known are {known}"
    else:
        why = invalid_option(end.options, types)
    if why:
        raise InvalidParameters(
            f"resource {end.resource.name}: transfer {end.resource.transfer.get('kind')!r}: {why}"
        )


def _loaded(resource: ResourceConfig, what: str, kind: Any, load: Callable[[str], Loaded]) -> Loaded:
    try:
        return load(kind)
    except UnknownPlugin as error:
        raise InvalidParameters(f"resource {resource.name}: {what}: {error}") from None


def _made(
    resource: ResourceConfig,
    what: str,
    options: Mapping[str, Any],
    load: Callable[[str], type[Loaded]],
    *arguments: Any,
) -> Loaded:
    """An instance of the kind that *options* name, with the others as its keyword arguments."""
    kind = options.get("kind")
    made = _loaded(resource, what, kind, load)
    others, signature = options_of(options), _signature(made)  # type: ignore[arg-type]
    try:
        signature.bind(*arguments, **others)
        why = invalid_option(others, {name: signature.parameters[name].annotation for name in others})
    except TypeError as error:
        why = str(error)
    if why:
        raise InvalidParameters(f"resource {resource.name}: {what} {kind!r}: {why}")
    return made(*arguments, **others)
