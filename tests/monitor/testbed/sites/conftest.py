"""A grid whose weather the tests dictate, and the ordinary OpenSSH client to use it with."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from monitor.testbed.sites import GridDescription, LocalGridOptions, load_description, running_sites
from monitor.testbed.weather.conditions import Conditions, SiteFault
from tests.waiting import eventually

ROOT = Path(__file__).parents[4]
REFERENCE_BYTES = 200_000
LIMIT_SECONDS = 60.0
_numbers = itertools.count(1)


@dataclass
class DictatedWeather:
    """What a test says, by run; *now* is for whoever has no label."""

    by_label: dict[str, Conditions] = field(default_factory=dict)
    now: Conditions | None = None

    def at(self, label: str | None, now: datetime) -> Conditions | None:
        return self.now if label is None else self.by_label.get(label, self.now)


def conditions(
    *, seconds: Mapping[str, float] | None = None, fault: SiteFault | None = None, others: float = 1.0
) -> Conditions:
    """Conditions in which every named mechanism takes its *seconds*, longest at site 0."""
    taken = dict(seconds or {})
    return Conditions(
        index=0, seconds=taken, slowest_site=dict.fromkeys(taken, 0), others_fraction=others, fault=fault
    )


@dataclass
class Client:
    """The OpenSSH client, used on one grid."""

    grid: GridDescription
    weather: DictatedWeather

    @contextmanager
    def now(self, weather: Conditions) -> Iterator[None]:
        """Let everybody without a label meet *weather* meanwhile."""
        self.weather.now = weather
        try:
            yield
        finally:
            self.weather.now = None

    def new_label(self, weather: Conditions | None = None) -> str:
        """The label of a new run, which meets *weather*."""
        label = f"test-{next(_numbers)}@2026-01-01T00:00:00.000000Z"
        if weather is not None:
            self.weather.by_label[label] = weather
        return label

    def argv(
        self, site: str, command: str, *, label: str | None = None, options: tuple[str, ...] = ()
    ) -> list[str]:
        labelled = ["-o", f"SetEnv=LC_GRIDCAST_RUN={label}"] if label else []
        return [
            "ssh",
            "-F",
            str(self.grid.ssh_config),
            "-o",
            "BatchMode=yes",
            *labelled,
            *options,
            site,
            command,
        ]

    def run(
        self,
        site: str,
        command: str,
        *,
        label: str | None = None,
        options: tuple[str, ...] = (),
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        argv = self.argv(site, command, label=label, options=options)
        return subprocess.run(
            argv, input=stdin, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )

    def scratch(self, site: str) -> Path:
        return Path(self.grid.resources[site].scratch)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A grid of seven sites at their real speed."""
    weather = DictatedWeather()
    options = LocalGridOptions(
        scale=1.0, reference_file_bytes=REFERENCE_BYTES, reference_result_bytes=REFERENCE_BYTES
    )
    with running_sites(tmp_path_factory.mktemp("grid"), weather=weather, options=options) as grid:
        yield Client(grid, weather)


@contextmanager
def served(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], GridDescription]]:
    """``manage.py testbed up`` in a process of its own, with the grid that it announces."""
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
            process.wait(timeout=60)


def least_seconds(measure: Callable[[], float], below_seconds: float, tries: int = 5) -> float:
    """The least that *measure* gives, asked until that is *below_seconds*: a busy machine only adds."""
    least = measure()
    while least >= below_seconds and (tries := tries - 1):
        least = min(least, measure())
    return least
