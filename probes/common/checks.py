"""Checks in the ``init`` stage: logins, scratch space, programs, and what transfers can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from probes.base import NoData, in_parallel
from probes.grid import CopyOptions, Grid


@dataclass(frozen=True)
class Needs:
    """What a run needs at one resource before it may start."""

    scratch_bytes: int
    tools: Sequence[str]


def check_resources(grid: Grid, needs: Mapping[str, Needs]) -> None:
    """Check all resources at once: login, scratch space, tools. Each failing check is an error of its own."""

    def check(resource: str) -> None:
        grid.check_credentials(resource)
        grid.check_scratch(resource, needs[resource].scratch_bytes)
        grid.check_tools(resource, needs[resource].tools)

    in_parallel(check, needs)


def check_transfers(grid: Grid, links: Iterable[tuple[str, str]], options: CopyOptions) -> None:
    """Raise NoData for a link, source to target, whose transfer cannot do what the probe is about.

    A program that a transfer needs and an end has not is a failure.
    """
    tools: dict[str, set[str]] = {}
    for source, target in links:
        can = grid.capabilities(source, target)
        if not can.third_party:
            raise NoData(f"copies from {source} to {target} go through the reporter, which would be measured")
        if options.server_checksum and not can.server_checksum:
            raise NoData(f"no checksums by the servers for copies from {source} to {target}")
        tools.setdefault(source, set()).update(can.source_tools)
        tools.setdefault(target, set()).update(can.target_tools)
    in_parallel(
        lambda resource: grid.check_tools(resource, sorted(tools[resource])),
        [resource for resource, needed in tools.items() if needed],
    )
