"""Check the access methods of a resource (shell, transfer, batch) without connecting to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from monitor.core.yamlfile.problems import Fault, quoted, suggestion
from probes.base import InvalidParameters
from reporters import batch, config, resolve, shells, transfers
from reporters.base import End, options_of
from reporters.options import invalid_option

_KINDS: Mapping[str, Callable[[], list[str]]] = {
    "shell": shells.names,
    "transfer": transfers.names,
    "batch": batch.names,
}


def faults(resource: config.ResourceConfig) -> Iterator[Fault]:
    """Yield each fault, with its path in the resource.

    Transfer and batch run through the shell, so they are checked only if the shell is valid.
    """
    option_faults = {method: list(_options(method, getattr(resource, method))) for method in _KINDS}
    for method, method_faults in option_faults.items():
        yield from method_faults
        if not method_faults and (method == "shell" or not option_faults["shell"]):
            try:
                _construct(method, resource)
            except InvalidParameters as error:
                method_faults.append(((method,), str(error)))
                yield (method,), str(error).removeprefix(f"resource {resource.name}: ")


def _options(method: str, options: Mapping[str, Any]) -> Iterator[Fault]:
    kind, kinds = options["kind"], _KINDS[method]()
    if kind not in kinds:
        yield (method, "kind"), f"there is no {method} {quoted(kind)}{suggestion(kind, kinds)}"
        return
    types = resolve.option_types(method, kind)
    for name, value in options_of(options).items():
        if name not in types:
            yield (
                (method, name),
                f"{method} {quoted(kind)} has no option {quoted(name)}{suggestion(name, types)}",
            )
        elif why := invalid_option({name: value}, types):
            yield (method, name), why


def _construct(method: str, resource: config.ResourceConfig) -> None:
    """Construct an access method of *resource*; raise InvalidParameters if its options are invalid."""
    shell = resolve.shell_of(resource, "")
    if method == "transfer":
        end = End(resource, shell)
        resolve.transfer_between(end, end)
    elif method == "batch":
        resolve.batch_of(resource, shell)
