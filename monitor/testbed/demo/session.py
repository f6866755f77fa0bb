"""One demo, from its start to its last word."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError, connection
from django.utils import timezone

from monitor import env
from monitor.forecasts import refresh
from monitor.ledger.run_now import run_now
from monitor.models import Run, Series
from monitor.testbed.demo import definition
from monitor.testbed.demo.ended_runs import Follower
from monitor.testbed.demo.rounds import Rounds
from monitor.testbed.demo.summary import summarise
from monitor.testbed.sites.description import load_description

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.supervisor import ServiceStatus
    from monitor.testbed.demo.services import DemoOptions

POLL_SECONDS = 0.25
MINUTE_IS_YOUNG_SECONDS = 30
Answer = TypeVar("Answer")


@dataclass
class Session:
    """Says what happens through *say*, a line at a time."""

    options: DemoOptions
    say: Callable[[str], None]
    _began: float = field(default_factory=time.monotonic)
    _depot_is_away: bool = False
    _before: set[Path] = field(default_factory=set)  # scratch files that a killed demo has left
    _states: dict[str, str] = field(default_factory=dict)

    def changed(self, name: str, status: ServiceStatus) -> None:
        """A service is up, or died: said as it happens."""
        if self._states.get(name) == status.state:
            return
        self._states[name] = status.state
        after = f"{time.monotonic() - self._began:5.1f} s"
        if status.state == "up":
            self.say(f"{after}  {name} is up" + (" again" if status.restarts else ""))
        elif status.state == "restarting":
            self.say(f"{after}  {name} died ({status.last_exit}), it is started again")

    def say_where(self) -> None:
        """Where the dashboard is, and how to get in."""
        token = self.options.var / "secrets" / "demo-token"
        self.say(
            f"""
gridcast is up: {self.options.url}

  read-only login   viewer / {env.demo_password("viewer")}
  with "Run now"    operator / {env.demo_password("operator")}
  forecast by API   curl -H "Authorization: Bearer $(cat {token})" \\
                      '{self.options.url}api/v1/forecasts?series=gather{self.options.ground.series}&metric=total.seconds'
  logs              {self.options.var / "log"}

{self._weather()}, seed {self.options.seed}. Finished runs follow; Ctrl-C stops everything.
"""
        )

    def _weather(self) -> str:
        if not self.options.wan:
            return f'Weather "{self.options.weather}"'
        return "The servers are real, the wide-area network between them is emulated"

    def follow(self) -> None:
        """Say every finished run, until interrupted."""
        follower = Follower(timezone.now())
        self._when_the_depot_is_there(lambda: _begin_at_once(timezone.now()))
        while True:
            self._say_news(follower)
            time.sleep(POLL_SECONDS)

    def run_rounds(self, count: int) -> dict[str, Any]:
        """Run every series *count* times; return the summary when all is in the depot and forecast."""
        start = timezone.now()
        self._before = set(scratch_files(self.options.grid_file.parent))
        follower = Follower(start)
        names = [one.name for one in definition.series(self.options.ground, scheduled=False)]
        series = list(Series.objects.filter(name__in=names))
        rounds = Rounds(series, count)
        while not self._when_the_depot_is_there(lambda: rounds.advance(timezone.now())):
            self._say_news(follower)
            time.sleep(POLL_SECONDS)
        self._when_the_depot_is_there(lambda: refresh.refresh_all(timezone.now()))
        self._say_news(follower)
        return self._summary(rounds, series, count, start)

    def _say_news(self, follower: Follower) -> None:
        for told in self._when_the_depot_is_there(follower.news) or []:
            self.say(told)

    def _when_the_depot_is_there(self, ask: Callable[[], Answer]) -> Answer | None:
        """The answer, or None while the depot is away, which is said once."""
        try:
            answer = ask()
        except DatabaseError as error:
            connection.close()
            if not self._depot_is_away:
                self.say(f"the depot does not answer, waiting for it: {str(error).splitlines()[0]}")
            self._depot_is_away = True
            return None
        self._depot_is_away = False
        return answer

    def _summary(self, rounds: Rounds, series: list[Series], count: int, start: datetime) -> dict[str, Any]:
        ended = Run.objects.ended().filter(pk__in=rounds.asked).values_list("series__name", flat=True)
        accounted = Counter(ended)
        left = [file for file in scratch_files(self.options.grid_file.parent) if file not in self._before]
        return {
            "rounds": count,
            "weather": {"profile": self.options.weather, "seed": self.options.seed},
            "series": summarise(series, start),
            "expected_runs": count * len(series),
            "accounted_runs": sum(accounted.values()),
            "scratch_files_left": [str(file) for file in left],
            "seconds_taken": round(time.monotonic() - self._began, 3),
            "complete": all(accounted[one.name] == count for one in series) and not left,
        }


def _begin_at_once(now: datetime) -> None:
    """Ask for a first run of everything, unless the schedule does so in a moment anyway."""
    if now.second < MINUTE_IS_YOUNG_SECONDS:
        for series in Series.objects.scheduled():
            run_now(series, who="the demo at its start", now=now)


def scratch_files(directory: Path) -> list[Path]:
    """What lies in the scratch directories of the local grid's sites: nothing, when no run is under way."""
    grid = load_description(directory)
    scratches = {resource.scratch for resource in grid.resources.values()} if grid else set()
    return [file for scratch in scratches for file in Path(scratch).rglob("*") if not file.is_dir()]
