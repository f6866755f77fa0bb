"""Two sites and the machine over real TUN devices: measurements agree with the link table.

A busy machine only delays packets: bounds in that direction are nightly.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.sites.files import write_atomically
from monitor.testbed.sites.processes import pids_with_variable
from monitor.testbed.wan import network
from monitor.testbed.wan.network import WideAreaNetwork, emulated
from reporters import process
from tests.monitor.testbed.wan.conftest import needs_namespaces
from tests.waiting import eventually

MEASURE = Path(__file__).with_name("measure.py")
QUIET = "link * * delay_ms=20\n"
DEADLINE_SECONDS = 60.0


class Wan:
    """A network whose link table a test changes, and which it measures from inside its sites."""

    def __init__(self, up: WideAreaNetwork, table: Path) -> None:
        self.up = up
        self.table = table

    def change(self, text: str) -> None:
        """Replace the table; the emulator reads it within a tenth of a second."""
        write_atomically(self.table, QUIET + text)

    def prefix(self, site: str) -> tuple[str, ...]:
        return () if site == "hub" else self.up.sites[site].prefix

    def measure(self, source: str, target: str, quantity: str, *more: str) -> Any:
        """Measure *quantity* at *source* against a server at *target*."""
        address = self.up.addresses[target]
        serve = [*self.prefix(target), sys.executable, str(MEASURE), "serve", address]
        with process.start(serve) as serving:
            assert serving.wait_for_output(lambda text: "\n" in text, DEADLINE_SECONDS)
            argv = [
                *self.prefix(source),
                sys.executable,
                str(MEASURE),
                quantity,
                address,
                serving.output.strip(),
            ]
            return json.loads(process.run([*argv, *more], timeout_seconds=DEADLINE_SECONDS).stdout)

    def round_trips(self, source: str, target: str, number: int = 20) -> list[float | None]:
        """Return the seconds of *number* round trips of small packets; None for each lost one."""
        durations: list[float | None] = self.measure(source, target, "round-trips", str(number))
        return durations


@pytest.fixture(scope="module")
def wan(directory: Path) -> Iterator[Wan]:
    needs_namespaces()
    table = directory / "links"
    table.write_text(QUIET)
    with emulated(directory, ("anl", "iu"), [table]) as up:
        yield Wan(up, table)
    assert pids_with_variable(f"{network.VARIABLE}={directory}") == set()
    assert f"gridcast{up.number}" not in {path.name for path in Path("/sys/class/net").iterdir()}


BOTH_WAYS = pytest.mark.parametrize(("source", "target"), [("anl", "iu"), ("hub", "anl")])


def slow_round_trips(wan: Wan, source: str, target: str) -> list[float]:
    """Set delays of 20 and 40 ms for the two directions; return the seconds of round trips from then on."""
    wan.change("link * anl delay_ms=40\n")
    assert eventually(lambda: min(filter(None, wan.round_trips(source, target, 2)), default=0) > 0.055)
    return [seconds for seconds in wan.round_trips(source, target) if seconds is not None]


@BOTH_WAYS
@pytest.mark.nightly
def test_a_round_trip_takes_no_less_than_both_delays(wan: Wan, source: str, target: str) -> None:
    assert min(slow_round_trips(wan, source, target)) >= 0.059


@pytest.mark.nightly
@BOTH_WAYS
def test_a_round_trip_takes_both_delays(wan: Wan, source: str, target: str) -> None:
    median = statistics.median(slow_round_trips(wan, source, target))
    assert median == pytest.approx(0.060, abs=0.2 * 0.060 + 0.002)


BOTTLENECK = "queue bytes=200000\nsite anl uplink_mbit=50\nlink anl iu rate_mbit=20\n"


def test_a_bottleneck_limits_the_rate(wan: Wan) -> None:
    wan.change("link * * delay_ms=0\n")
    assert eventually(lambda: wan.measure("anl", "iu", "rate", "1000000") > 25e6 / 8)
    wan.change(BOTTLENECK + "link * * delay_ms=0\n")
    assert eventually(lambda: wan.measure("anl", "iu", "rate", "1000000") < 21e6 / 8)


@pytest.mark.nightly
def test_bytes_arrive_at_the_rate_of_the_bottleneck(wan: Wan) -> None:
    wan.change(BOTTLENECK)
    assert eventually(lambda: wan.measure("anl", "iu", "rate", "200000") < 21e6 / 8)
    assert wan.measure("anl", "iu", "rate", "4000000") == pytest.approx(20e6 / 8, rel=0.15)


@pytest.mark.nightly
def test_a_cut_lasts_until_it_is_mended_and_leaves_other_links_alone(wan: Wan) -> None:
    wan.change("link anl iu loss_percent=100\n")
    assert eventually(lambda: wan.round_trips("anl", "iu", 1) == [None])
    assert wan.round_trips("anl", "hub", 3).count(None) == 0
    wan.change("")
    assert eventually(lambda: wan.round_trips("anl", "iu", 1) != [None])
    assert eventually(lambda: _counted(wan, "anl", "iu")["lost"] >= 1)


def test_an_unreadable_table_leaves_the_network_unchanged(wan: Wan) -> None:
    wan.change("link anl iu delay_ms=100\n")
    assert eventually(lambda: min(filter(None, wan.round_trips("anl", "iu", 1)), default=0) > 0.1)
    wan.change("link anl iu delay_ms=slow\n")
    assert eventually(
        lambda: any("links:2: delay_ms: expected a number" in line for line in wan.up.messages())
    )
    assert min(filter(None, wan.round_trips("anl", "iu", 1))) > 0.1
    wan.up.check()


def test_a_site_has_its_own_host_name_processes_and_neighbours_and_no_route_out(wan: Wan) -> None:
    script = "hostname; ls /proc | grep -c '^[0-9]'; getent hosts iu; cat /proc/net/route | wc -l; echo ~root"
    argv = [*wan.prefix("anl"), "sh", "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True)
    name, processes, neighbour, routes, home = done.stdout.splitlines()
    assert name == "anl"
    assert int(processes) < 10
    assert neighbour.split() == [wan.up.addresses["iu"], "iu"]
    assert routes == "2"  # the header, and the network itself
    assert home.endswith("/anl/home")


def _counted(wan: Wan, source: str, target: str) -> dict[str, int]:
    rows = json.loads(wan.up.counters.read_text())
    return next(row for row in rows if (row["source"], row["target"]) == (source, target))
