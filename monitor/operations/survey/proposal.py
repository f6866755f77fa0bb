"""Propose a first grid from the facts about hosts: which resources, which series, how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.operations.gridfile.definition import (
    GridDefinition,
    ResourceDefinition,
    SeriesDefinition,
    SiteDefinition,
    SuiteDefinition,
)
from monitor.operations.survey.facts import HostFacts
from monitor.operations.survey.ssh_hosts import SshHost

SSH_PORT = 22
SUITE = "main"  # the default of a series
# Small enough for any site; docs/probes.md has the published sizes.
GATHER_FILE_BYTES, GATHER_RESULT_BYTES, CIRCLE_FILE_BYTES = 10_000_000, 20_000_000, 10_000_000
DISK_FILE_BYTES = 67_108_864
_NEEDED_FREE_BYTES = 1_000_000_000
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_-]+")
_NAME_CHARACTERS = 50
MAX_COPYING_HOSTS = 12  # all pairs of them are tried


@dataclass(frozen=True)
class SurveyedHost:
    """A reachable host, and the facts about this host."""

    host: SshHost
    facts: HostFacts

    @property
    def name(self) -> str:
        """Return the name of site and resource; empty if the host's name has neither letters nor digits."""
        return _NOT_IN_NAMES.sub("-", self.host.name.lower()).strip("-_")[:_NAME_CHARACTERS]

    @property
    def problems(self) -> list[str]:
        """Return the reasons for which no probe can run on the host; empty if probes can run."""
        problems = []
        if not self.name:
            problems.append("its name has no letter and no digit: define an alias")
        if self.facts.missing_tools:
            problems.append(f"without {', '.join(self.facts.missing_tools)}")
        if not self.facts.scratch:
            problems.append("no safe, writable directory for scratch (docs/sites.md)")
        elif self.facts.free_bytes < _NEEDED_FREE_BYTES:
            problems.append(f"less than 1 GB free in {self.facts.scratch}")
        return problems


def resource(surveyed: SurveyedHost, config_file: str, *, by_name: bool) -> ResourceDefinition:
    """Return the resource of the host *surveyed*.

    *config_file* is the ssh_config with which the reporter logs in; "" stands for OpenSSH's default.
    Other sites reach the host by its address, port and user. With *by_name* they reach it by the name that
    the reporter uses; then each site needs an ssh_config that defines this name.
    """
    host = surveyed.host
    transfer: dict[str, Any] = {"kind": "ssh"}
    if not by_name:
        transfer |= {"host": host.address, "user": host.user}
        transfer |= {"port": host.port} if host.port != SSH_PORT else {}
    return ResourceDefinition(
        name=surveyed.name,
        site=surveyed.name,
        scratch=surveyed.facts.scratch,
        shell={"kind": "ssh", "host": host.alias}
        | ({"user": host.given_user} if host.given_user else {})
        | ({"config_file": config_file} if config_file else {}),
        transfer=transfer,
        batch=surveyed.facts.batch,
        address=host.address,
    )


def grid(
    hosts: Sequence[SurveyedHost],
    resources: Mapping[str, ResourceDefinition],
    failed_copies: Collection[tuple[str, str]],
) -> GridDefinition:
    """Propose a login series and a disk series for each host, and Circle and Gather among connected hosts.

    Connected hosts can all copy to each other. *failed_copies* are pairs of resources between which a copy
    failed in either direction.
    """
    connected = _connected([host.name for host in hosts[:MAX_COPYING_HOSTS]], failed_copies)
    series = [_login(host.name) for host in hosts]
    series += [_disk(host.name) for host in hosts]
    if len(connected) > 1:
        series.append(_circle(connected))
        compilers = [host.name for host in hosts if host.name in connected and host.facts.has_compiler]
        if compilers:
            series.append(_gather(compilers[0], connected))
    return GridDefinition(
        sites={name: SiteDefinition(name) for name in resources},
        resources=resources,
        suites={SUITE: SuiteDefinition(SUITE)},
        series={definition.name: definition for definition in series},
    )


def _connected(names: Sequence[str], failed_copies: Collection[tuple[str, str]]) -> list[str]:
    """Return hosts that can all copy to each other.

    While copies among the remaining hosts have failed, the host with the most failures is removed.
    """
    failed = {frozenset(pair) for pair in failed_copies}
    connected = list(names)
    while failed:
        failures = Counter(name for pair in failed for name in pair)
        worst = max(connected, key=lambda name: failures[name])
        connected.remove(worst)
        failed = {pair for pair in failed if worst not in pair}
    return connected


def _login(name: str) -> SeriesDefinition:
    return SeriesDefinition(
        f"login-{name}",
        "login",
        {"target": [name]},
        schedule="H/15 * * * *",
        suite=SUITE,
        limit_seconds=120.0,
    )


def _disk(name: str) -> SeriesDefinition:
    target, parameters = {"target": [name]}, {"file_bytes": DISK_FILE_BYTES}
    return SeriesDefinition(f"disk-{name}", "disk", target, parameters, "H H/6 * * *", limit_seconds=600.0)


def _circle(ring: Sequence[str]) -> SeriesDefinition:
    parameters = {"file_bytes": CIRCLE_FILE_BYTES}
    return SeriesDefinition(f"circle-{ring[0]}", "circle", {"ring": list(ring)}, parameters, "H * * * *")


def _gather(compute: str, connected: Sequence[str]) -> SeriesDefinition:
    """Return Gather: every host except *compute* is a source; the last source also receives the result."""
    sources = [name for name in connected if name != compute]
    return SeriesDefinition(
        f"gather-{compute}",
        "gather",
        {"sources": sources, "compute": [compute], "destination": [sources[-1]]},
        {"file_bytes": GATHER_FILE_BYTES, "result_bytes": GATHER_RESULT_BYTES},
        "H * * * *",
    )
