"""The weather that each run meets at the sites: drawn durations, corrected by the clock of the run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime

from monitor.testbed.sites import effects
from monitor.testbed.sites.effects import IncomingLink, Terrain
from monitor.testbed.sites.run_clock import Reserves, RunClock
from monitor.testbed.sites.weather_sources import WeatherSource
from monitor.testbed.weather.conditions import Conditions

RUN_LABEL = "LC_GRIDCAST_RUN"  # environment variable of a reporter's sessions: ``series@slot``
_RUNS_KEPT = 1000


class SiteWeather:
    """Computes the effects of the weather on sessions and connections; shared by all sites of a grid."""

    def __init__(self, source: WeatherSource, terrain: Terrain) -> None:
        self.source = source
        self.terrain = terrain
        self._reserves = {True: Reserves(), False: Reserves()}  # by whether the run is an application's
        self._runs: OrderedDict[str, RunClock] = OrderedDict()

    def conditions(self, label: str | None) -> Conditions | None:
        drawn = self.source.at(label, datetime.now(UTC))
        return drawn and self.terrain.for_run(label, drawn)

    def reference_file_bytes(self, label: str | None) -> int:
        """Return the size in bytes of the file whose transfer takes the drawn time in the run *label*."""
        return self.terrain.of_run(label).reference_file_bytes

    def run(self, label: str | None) -> RunClock:
        """Return the clock of the run *label*; a new clock if *label* is None. Old clocks are dropped."""
        if label is None:
            return RunClock()
        clock = self._runs.setdefault(label, RunClock())
        self._runs.move_to_end(label)
        if len(self._runs) > _RUNS_KEPT:
            self._runs.popitem(last=False)
        return clock

    def step_ended(
        self, label: str | None, mechanism: str, *, began: float, planned: float, now: float
    ) -> None:
        """Record the end of a slow step of a run in its clock; see ``RunClock.step_ended``."""
        if label is not None and self.conditions(label) is not None:
            reserves = self._reserves_of(label)
            self.run(label).step_ended(mechanism, reserves, began=began, planned=planned, now=now)

    def _reserves_of(self, label: str | None) -> Reserves:
        """Return the reserves for the run *label*: runs of applications share one set, other runs another."""
        return self._reserves[self.terrain.is_application(label)]

    def login_fault(self, site: int) -> str | None:
        """Return the site's current login fault: ``refused``, ``hang``, ``denied`` or None."""
        conditions = self.conditions(None)
        return effects.fault_of(conditions, "login", site) if conditions else None

    def login_seconds(self, label: str | None, site: int) -> float:
        """Return the seconds that the first login of a run at *site* takes after the accepted connection."""
        conditions = self.conditions(label)
        if conditions is None:
            return 0.0
        reserve_seconds = self._reserves_of(label).after("login") if label else 0.0
        return self.terrain.seconds(conditions, "login", site) - reserve_seconds

    def program_seconds(self, label: str | None, site: int, now: float) -> dict[str, float]:
        """Return the seconds that each mechanism takes in the programs of a session that begins at *now*.

        Credit and reserve are subtracted (``run_clock``), so the seconds may be negative.
        """
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
        # One session waits in the queue, which takes the credit, and computes, which leaves the reserve.
        corrected["queue"] = seconds["queue"] - credit
        corrected["compute"] = seconds["compute"] - reserves.after("compute")
        return corrected

    def session_environment(
        self, label: str | None, site: int, seconds: Mapping[str, float]
    ) -> dict[str, str]:
        """Return the environment of a session's programs; *seconds* are the durations by mechanism."""
        conditions = self.conditions(label)
        if conditions is None:
            return {}
        data_source = {"SITE_MAKES_DATA": "yes"} if self.terrain.makes_data(label, site) else {}
        return {**effects.session_environment(conditions, site, seconds), **data_source}

    def host_environment(self, site: int) -> dict[str, str]:
        """Return the environment of the programs that a reporter at *site* starts, by the current weather."""
        return effects.host_environment(self.conditions(None), site, self.terrain)

    def incoming_link(self, label: str | None, *, sender: int | None, receiver: int) -> IncomingLink:
        conditions = self.conditions(label)
        if conditions is None:
            return effects.OPEN_LINK
        return effects.incoming_link(
            conditions,
            self.terrain.of_run(label),
            sender=sender,
            receiver=receiver,
            computed_at=self.run(label).compute_site(),
        )

    def link_opened_at(self, label: str | None, mechanism: str, accepted_at: float) -> float:
        """Return the time at which a connection counts as opened: *accepted_at* minus credit and reserve."""
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
    """Return the label (``series@slot``) of the run that a session belongs to; None without a label."""
    return environment.get(RUN_LABEL) or None
