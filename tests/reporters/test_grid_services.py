"""Addresses, temporary servers, capabilities and expectations of a grid."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from probes.base import NoData, OutOfTime, ProbeFailed, RunPlan
from probes.common.checks import check_transfers
from probes.common.jobs import DEFAULT_WALL_SECONDS, wall_seconds
from probes.grid import Capabilities, CopyOptions
from reporters.base import CannotCopy, CommandFailed, ResourceUnfit
from reporters.config import Assignment, ResourceConfig
from reporters.deadline import Deadline
from reporters.grid import RunGrid
from tests.reporters.test_grid import SLOT
from tests.waiting import eventually

ECHO = """\
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print("listening", listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


def grid_of(tmp_path: Path, *, limit_seconds: float = 60.0, **changes: Any) -> RunGrid:
    """A grid of one local resource "one" with *changes*."""
    now = [0.0]
    resource = ResourceConfig(**{"name": "one", "site": "one", "scratch": str(tmp_path), **changes})
    assignment = Assignment(
        series="s",
        slot=SLOT,
        reporter="home",
        probe="x",
        bindings={},
        resources={"one": resource},
        expected_seconds={"stage.compute.seconds": 100.0},
    )
    return RunGrid(assignment, Deadline(limit_seconds, lambda: now[0]), lambda *_: None)


def port_of(line: str) -> int:
    return int(line.split()[1])


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_runs_within_its_context(tmp_path: Path) -> None:
    with grid_of(tmp_path).serving("one", ["python3", "-c", ECHO], within_seconds=60) as line:
        assert is_open(port_of(line))
    assert eventually(lambda: not is_open(port_of(line)))


def test_a_server_that_ends_before_it_is_ready_is_reported_with_the_reason(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo 'bind: address already in use: cannot listen' >&2; exit 3"]
    with (
        pytest.raises(CommandFailed, match="sh at one ended before it was ready: bind: address") as raised,
        grid_of(tmp_path).serving("one", argv, within_seconds=60),
    ):
        pass
    assert raised.value.exit_status == 3


def test_the_wait_for_a_silent_server_is_limited(tmp_path: Path) -> None:
    with (
        pytest.raises(CommandFailed, match=r"sleep at one was not ready after 0\.2 s"),
        grid_of(tmp_path).serving("one", ["sleep", "600"], within_seconds=0.2),
    ):
        pass


def test_a_server_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(ProbeFailed, match="no-such-server"),
        grid_of(tmp_path).serving("one", ["no-such-server"], within_seconds=60),
    ):
        pass


def test_no_server_is_started_when_the_run_is_out_of_time(tmp_path: Path) -> None:
    with (
        pytest.raises(OutOfTime),
        grid_of(tmp_path, limit_seconds=0).serving("one", ["sleep", "600"], within_seconds=5),
    ):
        pass


@pytest.mark.parametrize(
    ("changes", "address"),
    [
        ({}, "127.0.0.1"),
        ({"address": "dtn.example.org"}, "dtn.example.org"),
        ({"shell": {"kind": "ssh", "host": "login.example.org"}}, "login.example.org"),
        (
            {
                "shell": {"kind": "ssh", "host": "login.example.org"},
                "transfer": {"kind": "ssh", "host": "dtn.example.org"},
            },
            "dtn.example.org",
        ),
    ],
)
def test_the_address_is_the_one_for_other_sites(
    tmp_path: Path, changes: dict[str, Any], address: str
) -> None:
    assert grid_of(tmp_path, **changes).address("one") == address


def test_a_resource_without_an_address_is_an_error_with_advice(tmp_path: Path) -> None:
    grid = grid_of(tmp_path, shell={"kind": "gram", "contact": "ce.example.org"}, batch={"kind": "slurm"})
    with pytest.raises(ResourceUnfit, match="one has no address: set the one that other sites use"):
        grid.address("one")


def test_a_grid_returns_the_capabilities_of_copies(tmp_path: Path) -> None:
    assert grid_of(tmp_path).capabilities("one", "one").third_party


def test_there_is_no_way_between_two_kinds_of_transfer(tmp_path: Path) -> None:
    transfers = {"one": {"kind": "local"}, "two": {"kind": "ssh", "host": "two.example.org"}}
    resources = {
        name: ResourceConfig(name, name, str(tmp_path), transfer=transfer)
        for name, transfer in transfers.items()
    }
    assignment = Assignment("s", SLOT, "home", "x", {}, resources)
    grid = RunGrid(assignment, Deadline(60.0, lambda: 0.0), lambda *_: None)
    with pytest.raises(CannotCopy, match="one has transfer 'local', the other 'ssh'"):
        grid.capabilities("one", "two")


class Links:
    """A grid with the given capabilities of copies and nothing else."""

    def __init__(self, **can: bool) -> None:
        self._can: dict[str, Any] = {
            "third_party": True,
            "parallel_streams": False,
            "server_checksum": False,
            **can,
        }

    def capabilities(self, source: str, target: str) -> Capabilities:
        return Capabilities(**self._can)

    def expected_seconds(self, metric: str) -> float | None:
        return None


def test_a_probe_of_copies_has_no_data_without_third_party_copies() -> None:
    grid: Any = Links(third_party=False)
    with pytest.raises(NoData, match="copies from a to b go through the reporter"):
        check_transfers(grid, [("a", "b")], CopyOptions())


def test_server_checksums_are_requested_only_if_supported() -> None:
    wanted, links = CopyOptions(server_checksum=True), [("a", "b")]
    without: Any = Links()
    with pytest.raises(NoData, match="the servers compute no checksums of copies from a to b"):
        check_transfers(without, links, wanted)
    able: Any = Links(server_checksum=True)
    check_transfers(able, links, wanted)
    check_transfers(without, links, CopyOptions())


@pytest.mark.parametrize(("requested", "expected"), [(600.0, 600.0), (0.0, 260.0)])
def test_the_wall_limit_is_the_parameter_or_twice_the_forecast(
    tmp_path: Path, requested: float, expected: float
) -> None:
    plan = RunPlan(bindings={}, parameters={"wall_seconds": requested})
    assert wall_seconds(grid_of(tmp_path), plan) == expected


def test_a_wall_limit_without_a_forecast_is_a_generous_one() -> None:
    grid: Any = Links()
    assert wall_seconds(grid, RunPlan({}, {"wall_seconds": 0.0})) == DEFAULT_WALL_SECONDS
