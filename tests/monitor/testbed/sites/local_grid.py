"""A grid whose weather the tests set, and the ordinary OpenSSH client to use it with."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from monitor.testbed.sites import GridDescription, load_description
from monitor.testbed.weather.conditions import Conditions, SiteFault
from tests.waiting import eventually

ROOT = Path(__file__).parents[4]
REFERENCE_BYTES = 200_000
DEADLINE_SECONDS = 60.0
# Far beyond the deadline: a command that ends before the deadline has not been slowed down by this.
ENDLESS_SECONDS = 600.0
_numbers = itertools.count(1)


@dataclass
class SetWeather:
    """Weather by the label of a run; *now* is for sessions without a label.

    Attributes:
        asked_labels: the labels of runs whose first session has begun.
    """

    by_label: dict[str, Conditions] = field(default_factory=dict)
    now: Conditions | None = None
    asked_labels: set[str] = field(default_factory=set)

    def at(self, label: str | None, now: datetime) -> Conditions | None:
        if label is not None:
            self.asked_labels.add(label)
        return self.now if label is None else self.by_label.get(label, self.now)


def conditions(
    *, seconds: Mapping[str, float] | None = None, fault: SiteFault | None = None, others: float = 1.0
) -> Conditions:
    """Return conditions in which each mechanism takes its *seconds*, longest at site 0."""
    drawn = dict(seconds or {})
    return Conditions(
        index=0, seconds=drawn, slowest_site=dict.fromkeys(drawn, 0), others_fraction=others, fault=fault
    )


@dataclass
class Client:
    """The OpenSSH client, used on one grid."""

    grid: GridDescription
    weather: SetWeather

    @contextmanager
    def now(self, weather: Conditions) -> Iterator[None]:
        """Set *weather* for sessions without a label while the context is open."""
        self.weather.now = weather
        try:
            yield
        finally:
            self.weather.now = None

    def new_label(self, weather: Conditions | None = None) -> str:
        """Return the label of a new run with *weather*."""
        label = f"test-{next(_numbers)}@2026-01-01T00:00:00.000000Z"
        if weather is not None:
            self.weather.by_label[label] = weather
        return label

    def argv(
        self, site: str, command: str, *, label: str | None = None, options: tuple[str, ...] = ()
    ) -> list[str]:
        labelled = ["-o", f"SetEnv=LC_GRIDCAST_RUN={label}"] if label else []
        config = str(self.grid.ssh_config)
        return ["ssh", "-F", config, "-o", "BatchMode=yes", *labelled, *options, site, command]

    def run(
        self,
        site: str,
        command: str,
        *,
        label: str | None = None,
        options: tuple[str, ...] = (),
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run *command* at *site*; raises TimeoutExpired after the deadline."""
        argv = self.argv(site, command, label=label, options=options)
        return subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )

    def scratch(self, site: str) -> Path:
        return Path(self.grid.resources[site].scratch)


@contextmanager
def served(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], GridDescription]]:
    """Run ``manage.py testbed up`` in a process of its own; yields it with the description of its grid."""
    up = [sys.executable, "-W", "error", "manage.py", "testbed", "up", "--directory", str(directory)]
    with subprocess.Popen(
        [*up, *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert eventually(lambda: load_description(directory) is not None or process.poll() is not None)
            grid = load_description(directory)
            assert grid is not None, process.communicate()[1]
            yield process, grid
        finally:
            process.terminate()
            process.wait(timeout=DEADLINE_SECONDS)


def shortest_seconds(measure: Callable[[], float], below_seconds: float, tries: int = 5) -> float:
    """Return the shortest of *tries* measurements, or the first below *below_seconds*: load only adds.

    Still a comparison of durations: for nightly tests only.
    """
    shortest = measure()
    while shortest >= below_seconds and (tries := tries - 1):
        shortest = min(shortest, measure())
    return shortest
