"""The weather as the sites meet it: what each run has drawn, and what the sites remember about a run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from monitor.testbed.sites import effects
from monitor.testbed.sites.effects import Link, Terrain
from monitor.testbed.sites.sources import WeatherSource
from monitor.testbed.weather.conditions import Conditions

RUN_LABEL = "LC_GRIDCAST_RUN"  # the variable in which a reporter's sessions carry ``series@slot``
_RUNS_REMEMBERED = 1000


@dataclass
class RunMemory:
    """What the sites know about one run: where it has logged in, and where it has submitted a job."""

    logged_in: set[int] = field(default_factory=set)
    computed_at: int | None = None


class Climate:
    """Answers what the weather does to one session or connection. One for all sites of a grid."""

    def __init__(self, source: WeatherSource, terrain: Terrain) -> None:
        self.source = source
        self.terrain = terrain
        self._runs: OrderedDict[str, RunMemory] = OrderedDict()

    def conditions(self, label: str | None) -> Conditions | None:
        return self.source.at(label, datetime.now(UTC))

    def run(self, label: str) -> RunMemory:
        """The memory of a run; the oldest runs are forgotten."""
        memory = self._runs.setdefault(label, RunMemory())
        self._runs.move_to_end(label)
        if len(self._runs) > _RUNS_REMEMBERED:
            self._runs.popitem(last=False)
        return memory

    def door_fault(self, site: int) -> str | None:
        """How the site's listener is broken now: ``refused``, ``hang``, ``denied`` or not at all."""
        conditions = self.conditions(None)
        return effects.fault_of(conditions, "login", site) if conditions else None

    def login_seconds(self, label: str | None, site: int) -> float:
        """How long the first log-in of a run at *site* takes, counted from the accepted connection."""
        conditions = self.conditions(label)
        return self.terrain.seconds(conditions, "login", site) if conditions else 0.0

    def session_environment(self, label: str | None, site: int) -> dict[str, str]:
        conditions = self.conditions(label)
        return effects.session_environment(conditions, site, self.terrain) if conditions else {}

    def incoming_link(self, label: str | None, *, sender: int | None, receiver: int) -> Link:
        conditions = self.conditions(label)
        if conditions is None:
            return effects.OPEN_LINK
        computed_at = self.run(label).computed_at if label else None
        return effects.incoming_link(
            conditions, self.terrain, sender=sender, receiver=receiver, computed_at=computed_at
        )

    def disk_fault(self, label: str | None, site: int) -> str | None:
        conditions = self.conditions(label)
        return effects.fault_of(conditions, "disk", site) if conditions else None


def label_of(environment: Mapping[str, str]) -> str | None:
    """The label of the run that a session belongs to."""
    return environment.get(RUN_LABEL) or None
