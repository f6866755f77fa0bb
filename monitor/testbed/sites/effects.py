"""Compute the effects of the weather on one site, as seconds, rates and environments: pure functions.

The weather generator draws the conditions of each step at random. The *drawn* time of a mechanism (such as
``disk`` or ``inbound``) is the time that these conditions give for it, divided by the time scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from monitor.testbed.sites.pacing import bytes_per_second
from monitor.testbed.weather.conditions import Conditions

# Mechanisms that programs at the site implement; the programs' environment has the parameters.
PROGRAM_MECHANISMS = ("disk", "compile", "unlink", "queue", "compute")

# Only the computing site has these mechanisms, so the site drawn for a fault does not matter.
_COMPUTING = ("compile", "queue", "compute", "outbound")


@dataclass(frozen=True)
class Terrain:
    """Parameters of the effects. *scale* is the number of grid seconds per real second.

    The reference sizes determine the rate of a connection: the transfer of a file of *reference_file_bytes*,
    or of a result of *reference_result_bytes* from the compute site, takes the drawn time. *sources* are the
    indices of the sites that are neither the compute site nor the destination.

    A series is an application's if its name matches one of the patterns *applications* (``*`` matches any
    ending). For the runs of applications, *application_file_bytes* and *application_result_bytes* are the
    reference sizes.
    """

    scale: float
    reference_file_bytes: int
    reference_result_bytes: int
    sources: tuple[int, ...]
    applications: tuple[str, ...] = ()
    application_file_bytes: int = 0
    application_result_bytes: int = 0

    def is_application(self, label: str | None) -> bool:
        """Return whether the run *label* (``series@slot``) is of a series that is an application's."""
        series = (label or "").partition("@")[0]
        return any(fnmatchcase(series, pattern) for pattern in self.applications)

    def of_run(self, label: str | None) -> Terrain:
        """Return the parameters with the reference sizes for the run *label*."""
        if not self.is_application(label):
            return self
        return dataclasses.replace(
            self,
            reference_file_bytes=self.application_file_bytes,
            reference_result_bytes=self.application_result_bytes,
        )

    def makes_data(self, label: str | None, site: int) -> bool:
        """Return whether *site* generates the data of an application, at the speed of its disk."""
        return self.is_application(label) and site in self.sources

    def for_run(self, label: str | None, conditions: Conditions) -> Conditions:
        """Return the *conditions* of the run *label*.

        In a run of an application each role has one site, which takes the whole drawn time.
        """
        if not self.is_application(label):
            return conditions
        return dataclasses.replace(conditions, seconds=conditions.application_seconds, slowest_site={})

    def seconds(self, conditions: Conditions, mechanism: str, site: int) -> float:
        """Return the real seconds of *mechanism* at *site*.

        The slowest site takes the drawn time, the other sites take a fraction of it.
        """
        drawn = conditions.seconds.get(mechanism, 0.0) / self.scale
        slowest = self._slowest(conditions, mechanism)
        return drawn if slowest is None or slowest == site else drawn * conditions.others_fraction

    def _slowest(self, conditions: Conditions, mechanism: str) -> int | None:
        """Return the slowest site, which is a source if only sources have the mechanism."""
        slowest = conditions.slowest_site.get(mechanism)
        if slowest is None or mechanism not in ("disk", "inbound") or slowest in self.sources:
            return slowest
        return self.sources[slowest % len(self.sources)] if self.sources else slowest


@dataclass(frozen=True)
class IncomingLink:
    """One incoming connection: its rate (None: no limit) and its fault, if any."""

    bytes_per_second: float | None
    fault: str | None
    mechanism: str = "inbound"


OPEN_LINK = IncomingLink(bytes_per_second=None, fault=None)


def fault_of(conditions: Conditions, mechanism: str, site: int) -> str | None:
    """Return the kind of the fault of *mechanism* at *site*, None without one."""
    fault = conditions.fault
    if fault is None or fault.mechanism != mechanism:
        return None
    return fault.kind if mechanism in _COMPUTING or fault.site == site else None


def program_seconds(conditions: Conditions, site: int, terrain: Terrain) -> dict[str, float]:
    """Return how long the site's programs take, by mechanism."""
    return {name: terrain.seconds(conditions, name, site) for name in PROGRAM_MECHANISMS}


def session_environment(conditions: Conditions, site: int, seconds: Mapping[str, float]) -> dict[str, str]:
    """Return ``SITE_<MECHANISM>_SECONDS`` and ``SITE_<MECHANISM>_FAULT`` for the site's programs."""
    environment = {
        f"SITE_{name.upper()}_SECONDS": f"{max(0.0, value):.3f}" for name, value in seconds.items()
    }
    for name in PROGRAM_MECHANISMS:
        fault = fault_of(conditions, name, site)
        if fault:
            environment[f"SITE_{name.upper()}_FAULT"] = fault
    return environment


def incoming_link(
    conditions: Conditions, terrain: Terrain, *, sender: int | None, receiver: int, computed_at: int | None
) -> IncomingLink:
    """Return the link of a connection from *sender* (None: from outside the grid) to *receiver*.

    A file from the site at which the run has computed is its result and travels ``outbound``; other files
    travel ``inbound``, with a fault if either end has it.
    """
    if sender is not None and sender == computed_at:
        seconds = terrain.seconds(conditions, "outbound", sender)
        rate = bytes_per_second(terrain.reference_result_bytes, seconds)
        return IncomingLink(rate, fault_of(conditions, "outbound", sender), "outbound")
    seconds = terrain.seconds(conditions, "inbound", receiver if sender is None else sender)
    faults = [fault_of(conditions, "inbound", end) for end in (sender, receiver) if end is not None]
    rate = bytes_per_second(terrain.reference_file_bytes, seconds)
    return IncomingLink(rate, next(filter(None, faults), None))
