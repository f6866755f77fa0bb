"""Checks for the ``init`` stage: logins, scratch space, programs, capabilities of transfers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from probes.base import NoData, in_parallel
from probes.grid import CopyOptions, Grid


@dataclass(frozen=True)
class Needs:
    """Requirements of a run at one resource: free scratch space and programs on the PATH."""

    scratch_bytes: int
    tools: Sequence[str]


def check_resources(grid: Grid, needs: Mapping[str, Needs]) -> None:
    """Check login, scratch space and tools of all resources in parallel.

    Raises:
        ProbeFailed: a check failed. If checks of several resources fail, the first resource's error is
            raised.
    """

    def check(resource: str) -> None:
        grid.check_credentials(resource)
        grid.check_scratch(resource, needs[resource].scratch_bytes)
        grid.check_tools(resource, needs[resource].tools)

    in_parallel(check, needs)


def check_transfers(grid: Grid, links: Iterable[tuple[str, str]], options: CopyOptions) -> None:
    """Check that every link (source, target) has a transfer with the properties that the probe measures.

    Raises:
        NoData: a transfer copies through the reporter, or lacks the server checksums that *options* require.
        ProbeFailed: a resource lacks a program that its transfer needs.
    """
    tools: dict[str, set[str]] = {}
    for source, target in links:
        capabilities = grid.capabilities(source, target)
        if not capabilities.third_party:
            raise NoData(f"copies from {source} to {target} go through the reporter, which would be measured")
        if options.server_checksum and not capabilities.server_checksum:
            raise NoData(f"the servers compute no checksums of copies from {source} to {target}")
        tools.setdefault(source, set()).update(capabilities.source_tools)
        tools.setdefault(target, set()).update(capabilities.target_tools)
    in_parallel(
        lambda resource: grid.check_tools(resource, sorted(tools[resource])),
        [resource for resource, names in tools.items() if names],
    )
