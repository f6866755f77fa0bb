"""What is wrong with how a resource says it is reached, by the key at fault. Nothing is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from monitor.gridfile.problems import Path, nearest, shown
from probes.base import InvalidParameters
from reporters import batch, config, resolve, shells, transfers
from reporters.base import End, options_of
from reporters.options import invalid_option

_KINDS: Mapping[str, Callable[[], list[str]]] = {
    "shell": shells.names,
    "transfer": transfers.names,
    "batch": batch.names,
}


def faults(resource: config.ResourceConfig) -> Iterator[tuple[Path, str]]:
    """Each fault, by its path in the resource. What needs a shell is only looked at when that is sound."""
    found = {way: list(_options(way, getattr(resource, way))) for way in _KINDS}
    for way, problems in found.items():
        yield from problems
        if not problems and (way == "shell" or not found["shell"]):
            try:
                _made(way, resource)
            except InvalidParameters as error:
                problems.append(((way,), str(error)))
                yield (way,), str(error).removeprefix(f"resource {resource.name}: ")


def _options(way: str, options: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    kind, kinds = options["kind"], _KINDS[way]()
    if kind not in kinds:
        yield (way, "kind"), f"there is no {way} {shown(kind)}{nearest(kind, kinds)}"
        return
    types = resolve.option_types(way, kind)
    for name, value in options_of(options).items():
        if name not in types:
            yield (way, name), f"{way} {shown(kind)} has no option {shown(name)}{nearest(name, types)}"
        elif why := invalid_option({name: value}, types):
            yield (way, name), why


def _made(way: str, resource: config.ResourceConfig) -> None:
    """Raise InvalidParameters unless *way* of *resource* can be made."""
    shell = resolve.shell_of(resource, "")
    if way == "transfer":
        end = End(resource, shell)
        resolve.transfer_between(end, end)
    elif way == "batch":
        resolve.batch_of(resource, shell)
