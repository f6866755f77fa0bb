"""The weather as the sites meet it: what each run has drawn, and how much of it is still to come."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime

from monitor.testbed.sites import effects
from monitor.testbed.sites.effects import IncomingLink, Terrain
from monitor.testbed.sites.run_clock import Reserves, RunClock
from monitor.testbed.sites.weather_sources import WeatherSource
from monitor.testbed.weather.conditions import Conditions

RUN_LABEL = "LC_GRIDCAST_RUN"  # the variable in which a reporter's sessions carry ``series@slot``
_RUNS_REMEMBERED = 1000


class SiteWeather:
    """Answers what the weather does to one session or connection. One for all sites of a grid."""

    def __init__(self, source: WeatherSource, terrain: Terrain) -> None:
        self.source = source
        self.terrain = terrain
        self._reserves = {True: Reserves(), False: Reserves()}  # of applications, of others
        self._runs: OrderedDict[str, RunClock] = OrderedDict()

    def conditions(self, label: str | None) -> Conditions | None:
        drawn = self.source.at(label, datetime.now(UTC))
        return drawn and self.terrain.met_by(label, drawn)

    def reference_file_bytes(self, label: str | None) -> int:
        """The size of the file whose transfer takes as long as was drawn, in a run of that label."""
        return self.terrain.of_run(label).reference_file_bytes

    def run(self, label: str | None) -> RunClock:
        """The clock of a run, the oldest are forgotten; whoever has no label gets a new one each time."""
        if label is None:
            return RunClock()
        clock = self._runs.setdefault(label, RunClock())
        self._runs.move_to_end(label)
        if len(self._runs) > _RUNS_REMEMBERED:
            self._runs.popitem(last=False)
        return clock

    def step_ended(
        self, label: str | None, mechanism: str, *, began: float, planned: float, now: float
    ) -> None:
        """A slow step of a run has ended, see ``RunClock``."""
        if label is not None and self.conditions(label) is not None:
            reserves = self._reserves_of(label)
            self.run(label).step_ended(mechanism, reserves, began=began, planned=planned, now=now)

    def _reserves_of(self, label: str | None) -> Reserves:
        """What has been learned from runs of the same kind."""
        return self._reserves[self.terrain.is_application(label)]

    def door_fault(self, site: int) -> str | None:
        """How the site's listener is broken now: ``refused``, ``hang``, ``denied`` or not at all."""
        conditions = self.conditions(None)
        return effects.fault_of(conditions, "login", site) if conditions else None

    def login_seconds(self, label: str | None, site: int) -> float:
        """How long the first log-in of a run at *site* is held, counted from the accepted connection."""
        conditions = self.conditions(label)
        if conditions is None:
            return 0.0
        reserve_seconds = self._reserves_of(label).after("login") if label else 0.0
        return self.terrain.seconds(conditions, "login", site) - reserve_seconds

    def program_seconds(self, label: str | None, site: int, now: float) -> dict[str, float]:
        """How long the programs of a session that begins at *now* take, by mechanism; may be less than 0."""
        conditions = self.conditions(label)
        if conditions is None:
            return {}
        seconds = effects.program_seconds(conditions, site, self.terrain)
        if label is None:
            return seconds
        if self.run(label).has_compiled or self.terrain.makes_data(label, site):
            seconds["compile"] = 0.0
        reserves, credit = self._reserves_of(label), self.run(label).credit_seconds(now)
        corrected = {name: value - credit - reserves.after(name) for name, value in seconds.items()}
        # The queue and the computation are one session: the former begins it, the latter ends it.
        corrected["queue"] = seconds["queue"] - credit
        corrected["compute"] = seconds["compute"] - reserves.after("compute")
        return corrected

    def session_environment(
        self, label: str | None, site: int, seconds: Mapping[str, float]
    ) -> dict[str, str]:
        """What the programs of a session are told that take *seconds* by mechanism."""
        conditions = self.conditions(label)
        if conditions is None:
            return {}
        making = {"SITE_MAKES_DATA": "yes"} if self.terrain.makes_data(label, site) else {}
        return {**effects.session_environment(conditions, site, seconds), **making}

    def incoming_link(self, label: str | None, *, sender: int | None, receiver: int) -> IncomingLink:
        conditions = self.conditions(label)
        if conditions is None:
            return effects.OPEN_LINK
        return effects.incoming_link(
            conditions,
            self.terrain.of_run(label),
            sender=sender,
            receiver=receiver,
            computed_at=self.run(label).computed_where(),
        )

    def link_opened_at(self, label: str | None, mechanism: str, accepted_at: float) -> float:
        """The moment from which the bytes of a connection count."""
        if label is None:
            return accepted_at
        return (
            accepted_at
            - self.run(label).credit_seconds(accepted_at)
            - self._reserves_of(label).after(mechanism)
        )

    def disk_fault(self, label: str | None, site: int) -> str | None:
        conditions = self.conditions(label)
        return effects.fault_of(conditions, "disk", site) if conditions else None


def label_of(environment: Mapping[str, str]) -> str | None:
    """The label of the run that a session belongs to."""
    return environment.get(RUN_LABEL) or None
