"""One demo from start to end: its output, its rounds and its summary."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DatabaseError, connection
from django.utils import timezone

from monitor.analysis.forecasts import refresh
from monitor.core import env
from monitor.models import Run, Series
from monitor.runs.ledger.holds import RunHeld
from monitor.runs.ledger.run_now import run_now
from monitor.testbed.demo import definition
from monitor.testbed.demo.ended_runs import EndedRuns
from monitor.testbed.demo.rounds import Rounds
from monitor.testbed.demo.services import REMOTE_REPORTERS
from monitor.testbed.demo.summary import summarise
from monitor.testbed.sites.description import load_description

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.testbed.demo.services import DemoOptions

POLL_SECONDS = 0.5
FIRST_HALF_SECONDS = 30  # of a minute: schedules start at its beginning
Answer = TypeVar("Answer")


@dataclass
class Session:
    """Runs a demo and reports its events: calls *say* with a text for each event."""

    options: DemoOptions
    say: Callable[[str], None]
    began: float  # by the monotonic clock
    _is_depot_unavailable: bool = False
    _old_scratch_files: set[Path] = field(default_factory=set)  # left by a killed demo

    def say_urls(self) -> None:
        """Report the URL of the dashboard and the accounts that can log in."""
        url = self.options.installation.address.browser_url(env.hosts())
        token = self.options.installation.var / "secrets" / "demo-token"
        self.say(
            f"""
gridcast is up: {url}

  read-only login   viewer / {env.demo_password("viewer")}
  with "Run now"    operator / {env.demo_password("operator")}
  forecast by API   curl -H "Authorization: Bearer $(cat {token})" \\
                      '{url}api/v1/forecasts?series=gather{self.options.grid.series}&metric=total.seconds'
  logs              {self.options.installation.log_directory}
{self._remote_reporters()}
{self._weather()}, seed {self.options.seed}. Finished runs follow; Ctrl-C stops everything.
"""
        )

    def _remote_reporters(self) -> str:
        if self.options.wan:
            return ""
        sites = " and ".join(definition.REMOTE_REPORTERS)
        log = self.options.installation.log_directory / f"{REMOTE_REPORTERS}.log"
        return (
            f"  remote reporters  being deployed over SSH to {sites}: {log}\n"
            "                    the weather of disks, compilers and jobs reaches their runs; that of\n"
            "                    logins and links does not: they run on their own hosts\n"
        )

    def _weather(self) -> str:
        if not self.options.wan:
            return f'Weather "{self.options.weather}"'
        return "The servers are real, the wide-area network between them is emulated"

    def follow(self) -> None:
        """Report every ended run until interrupted."""
        ended_runs = EndedRuns(timezone.now())
        self._if_depot_answers(lambda: run_all_now(timezone.now()))
        while True:
            self._say_ended(ended_runs)
            time.sleep(POLL_SECONDS)

    def run_rounds(self, count: int) -> dict[str, Any]:
        """Run every series *count* times; return the summary when all runs are stored and forecast."""
        start = timezone.now()
        self._old_scratch_files = set(scratch_files(self.options.grid_file.parent))
        ended_runs = EndedRuns(start)
        names = [series.name for series in definition.series(self.options.grid, scheduled=False)]
        all_series = list(Series.objects.filter(name__in=names))
        rounds = Rounds(all_series, count)
        while not self._if_depot_answers(lambda: rounds.advance(timezone.now())):
            self._say_ended(ended_runs)
            time.sleep(POLL_SECONDS)
        self._if_depot_answers(lambda: refresh.refresh_all(timezone.now()))
        self._say_ended(ended_runs)
        for reason in rounds.held.values():
            self.say(f"left out of the rounds: {reason}")
        return self._summary(rounds, all_series, count, start)

    def _say_ended(self, ended_runs: EndedRuns) -> None:
        for line in self._if_depot_answers(ended_runs.new_lines) or []:
            self.say(line)

    def _if_depot_answers(self, ask: Callable[[], Answer]) -> Answer | None:
        """Return the result of *ask*; None while the depot is unavailable. Report an outage once."""
        try:
            answer = ask()
        except DatabaseError as error:
            connection.close()
            if not self._is_depot_unavailable:
                self.say(f"the depot is unavailable, waiting for it: {str(error).splitlines()[0]}")
            self._is_depot_unavailable = True
            return None
        self._is_depot_unavailable = False
        return answer

    def _summary(self, rounds: Rounds, series: list[Series], count: int, start: datetime) -> dict[str, Any]:
        ended = Run.objects.ended().filter(pk__in=rounds.requested).values_list("series__name", flat=True)
        ended_counts = Counter(ended)
        left_files = [
            file
            for file in scratch_files(self.options.grid_file.parent)
            if file not in self._old_scratch_files
        ]
        return {
            "rounds": count,
            "weather": {"profile": self.options.weather, "seed": self.options.seed},
            "series": summarise(series, start),
            "expected_runs": count * len(series),
            "accounted_runs": sum(ended_counts.values()),
            "held_series": sorted(rounds.held),
            "scratch_files_left": [str(file) for file in left_files],
            "seconds_taken": round(time.monotonic() - self.began, 3),
            "complete": not left_files
            and all(ended_counts[each.name] == count for each in series if each.name not in rounds.held),
        }


def run_all_now(now: datetime) -> None:
    """Run the home reporter's series now if the next minute, when schedules run, is more than 30 s away."""
    if now.second < FIRST_HALF_SECONDS:
        for series in Series.objects.scheduled().filter(reporter__site=None):
            with contextlib.suppress(RunHeld):  # a user paused it in an earlier demo
                run_now(series, who="the demo at its start", now=now)


def scratch_files(directory: Path) -> list[Path]:
    """Return the files in the sites' scratch directories; empty while no run is in progress."""
    grid = load_description(directory)
    scratches = {resource.scratch for resource in grid.resources.values()} if grid else set()
    return [file for scratch in scratches for file in Path(scratch).rglob("*") if not file.is_dir()]
