"""Compute the effects of the weather on one site, as seconds, rates and environments: pure functions.

The weather generator draws the conditions of each step at random: seconds for each mechanism, such as
``disk`` or ``inbound``. The *drawn* time of a mechanism is these seconds divided by the time scale.
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
    """Parameters of the effects.

    Attributes:
        scale: number of grid seconds per real second.
        sources: indices of the sites that are neither the compute site nor the destination.
        reference_file_bytes: size of a file whose transfer takes the drawn time of ``inbound``.
        reference_result_bytes: size of a result whose transfer takes the drawn time of ``outbound``.
        applications: patterns of names of series (``*`` matches any ending); these series belong to an
            application.
        application_file_bytes, application_result_bytes: the reference sizes for runs of an application.
    """

    scale: float
    reference_file_bytes: int
    reference_result_bytes: int
    sources: tuple[int, ...]
    applications: tuple[str, ...] = ()
    application_file_bytes: int = 0
    application_result_bytes: int = 0

    def is_application(self, label: str | None) -> bool:
        """Return whether the series of the run *label* (``series@slot``) belongs to an application."""
        series = (label or "").partition("@")[0]
        return any(fnmatchcase(series, pattern) for pattern in self.applications)

    def of_run(self, label: str | None) -> Terrain:
        """Return the parameters with the reference sizes that apply to the run *label*."""
        if not self.is_application(label):
            return self
        return dataclasses.replace(
            self,
            reference_file_bytes=self.application_file_bytes,
            reference_result_bytes=self.application_result_bytes,
        )

    def makes_data(self, label: str | None, site: int) -> bool:
        """Return whether *label* is an application's run and *site* a source, which generates the data."""
        return self.is_application(label) and site in self.sources

    def for_run(self, label: str | None, conditions: Conditions) -> Conditions:
        """Return *conditions* as they apply to the run *label*.

        In a run of an application each role has only one site, and this site takes the whole drawn time.
        """
        if not self.is_application(label):
            return conditions
        return dataclasses.replace(conditions, seconds=conditions.application_seconds, slowest_site={})

    def seconds(self, conditions: Conditions, mechanism: str, site: int) -> float:
        """Return how many real seconds *mechanism* takes at *site*.

        The slowest site takes the drawn time, the other sites take a fraction of that time.
        """
        drawn = conditions.seconds.get(mechanism, 0.0) / self.scale
        slowest = self._slowest(conditions, mechanism)
        return drawn if slowest is None or slowest == site else drawn * conditions.others_fraction

    def _slowest(self, conditions: Conditions, mechanism: str) -> int | None:
        """Return the index of the slowest site: one of the sources if only sources have *mechanism*."""
        slowest = conditions.slowest_site.get(mechanism)
        if slowest is None or mechanism not in ("disk", "inbound") or slowest in self.sources:
            return slowest
        return self.sources[slowest % len(self.sources)] if self.sources else slowest


@dataclass(frozen=True)
class IncomingLink:
    """The rate of one incoming connection (None: no limit) and the fault that breaks it, if any."""

    bytes_per_second: float | None
    fault: str | None
    mechanism: str = "inbound"


OPEN_LINK = IncomingLink(bytes_per_second=None, fault=None)


def fault_of(conditions: Conditions, mechanism: str, site: int) -> str | None:
    """Return the kind of the fault of *mechanism* at *site*; None if there is no fault."""
    fault = conditions.fault
    if fault is None or fault.mechanism != mechanism:
        return None
    return fault.kind if mechanism in _COMPUTING or fault.site == site else None


def host_environment(conditions: Conditions | None, site: int, terrain: Terrain) -> dict[str, str]:
    """Return the environment, as ``session_environment``, of programs that no session of a site has started.

    Unlike the probes of sessions, those of a reporter at the site compute there: a fault of computing
    concerns its own site only. What does not apply is empty, so that no value of another time remains.
    """
    names = [name.upper() for name in PROGRAM_MECHANISMS]
    nothing = {f"SITE_{name}_{what}": "" for name in names for what in ("SECONDS", "FAULT")}
    if conditions is None:
        return nothing
    elsewhere = conditions.fault is not None and conditions.fault.site != site
    local = dataclasses.replace(conditions, fault=None) if elsewhere else conditions
    return {**nothing, **session_environment(local, site, program_seconds(local, site, terrain))}


def program_seconds(conditions: Conditions, site: int, terrain: Terrain) -> dict[str, float]:
    """Return how many real seconds the site's programs take, by mechanism."""
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

    *computed_at* is the site at which the run has computed. A file from this site is a result, which travels
    ``outbound``. Other files travel ``inbound``; such a link has the fault of the sender or of the receiver.
    """
    if sender is not None and sender == computed_at:
        seconds = terrain.seconds(conditions, "outbound", sender)
        rate = bytes_per_second(terrain.reference_result_bytes, seconds)
        return IncomingLink(rate, fault_of(conditions, "outbound", sender), "outbound")
    seconds = terrain.seconds(conditions, "inbound", receiver if sender is None else sender)
    faults = [fault_of(conditions, "inbound", end) for end in (sender, receiver) if end is not None]
    rate = bytes_per_second(terrain.reference_file_bytes, seconds)
    return IncomingLink(rate, next(filter(None, faults), None))
