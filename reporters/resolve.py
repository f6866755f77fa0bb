"""Create the shell, transfer and batch system of a resource from its configuration."""

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
_signature = functools.cache(inspect.signature)  # each run needs several


def check(resource: ResourceConfig) -> None:
    """Raise InvalidParameters unless the configuration of *resource* is valid. Opens no connection."""
    if not resource.scratch.startswith("/"):
        raise InvalidParameters(f"resource {resource.name}: scratch {resource.scratch!r} is not absolute")
    shell = shell_of(resource, "")
    end = End(resource, shell)
    transfer_between(end, end)
    batch_of(resource, shell)


def option_types(method: str, kind: str) -> Mapping[str, str]:
    """Return the type of each option of *kind*, by the name of the option.

    *method* is "shell", "transfer" or "batch"; *kind* is a kind of this method, such as "ssh".

    Raises:
        UnknownPlugin: there is no such kind.
    """
    if method == "transfer":
        return transfers.load(kind).option_types
    plugin: type[Any] = shells.load(kind) if method == "shell" else batch.load(kind)
    parameters = _signature(plugin).parameters.values()  # type: ignore[arg-type]  # mypy: no class is hashable
    return {option.name: option.annotation for option in parameters if option.kind is option.KEYWORD_ONLY}


def shell_of(resource: ResourceConfig, label: str) -> ResourceShell:
    """Return the shell of *resource*, not connected yet; *label* names the run to the site's admins.

    Raises:
        InvalidParameters: the kind of the shell is unknown, or its options are invalid.
    """
    return _create(resource, "shell", resource.shell, shells.load, resource.name, label)


def batch_of(resource: ResourceConfig, shell: ResourceShell) -> BatchSystem:
    """Return the batch system of *resource*. Raises InvalidParameters as ``shell_of`` does."""
    return _create(resource, "batch", resource.batch, batch.load, shell)


def transfer_between(source: End, target: End) -> FileTransfer:
    """Return the transfer from *source* to *target*.

    Raises:
        CannotCopy: the two ends have different kinds of transfer.
        InvalidParameters: the kind is unknown, or the options of an end are invalid.
    """
    kinds = [end.resource.transfer.get("kind") for end in (source, target)]
    if kinds[0] != kinds[1]:
        raise CannotCopy(
            f"cannot copy from {source.resource.name} to {target.resource.name}: "
            f"one has transfer {kinds[0]!r}, the other {kinds[1]!r}",
            resource=target.resource.name,
        )
    transfer = _load(target.resource, "transfer", kinds[0], transfers.load)
    for end in (source, target):
        _check_options(end, transfer.option_types)
    return transfer(source, target)


def _check_options(end: End, types: Mapping[str, str]) -> None:
    unknown = sorted(end.options.keys() - types.keys())
    if unknown:
        valid = ", ".join(sorted(types)) or "none"
        problem = f"unknown option {unknown[0]!r}; known are {valid}"
    else:
        problem = invalid_option(end.options, types)
    if problem:
        raise InvalidParameters(
            f"resource {end.resource.name}: transfer {end.resource.transfer.get('kind')!r}: {problem}"
        )


def _load(resource: ResourceConfig, method: str, kind: Any, load: Callable[[str], Loaded]) -> Loaded:
    try:
        return load(kind)
    except UnknownPlugin as error:
        raise InvalidParameters(f"resource {resource.name}: {method}: {error}") from None


def _create(
    resource: ResourceConfig,
    method: str,
    options: Mapping[str, Any],
    load: Callable[[str], type[Loaded]],
    *arguments: Any,
) -> Loaded:
    """Return an instance of the plug-in ``options["kind"]``, which *load* finds.

    The constructor gets *arguments* and, as keyword arguments, the options other than the kind. Messages name
    *method*, which is "shell" or "batch".
    """
    kind = options.get("kind")
    plugin = _load(resource, method, kind, load)
    others, signature = options_of(options), _signature(plugin)  # type: ignore[arg-type]
    try:
        signature.bind(*arguments, **others)
        problem = invalid_option(others, {name: signature.parameters[name].annotation for name in others})
    except TypeError as error:
        problem = str(error)
    if problem:
        raise InvalidParameters(f"resource {resource.name}: {method} {kind!r}: {problem}")
    return plugin(*arguments, **others)
