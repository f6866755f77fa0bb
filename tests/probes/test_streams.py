"""Streams: how many readers and writers at once; runs that go on, the kernel's tokens, and its barriers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import probes
from probes.base import InvalidParameters, ProbeFailed, checked_plan
from probes.streams import limits, parse_streams
from reporters.grid import RunGrid
from reporters.run import RunnerTools
from tests.probes.kernels import build, refusal
from tests.probes.kernels import run as run_kernel
from tests.probes.runs import metrics, run_locally

Probe = probes.load("streams")
SMALL: dict[str, Any] = {"tasks": 4, "file_bytes": 524_288, "bins": 2}
PRINTED = """\
total 3.000000
write seconds 1.000000 io 0.500000 barrier 0.250000 spread 0.100000
read seconds 1.000000 io 0.600000 barrier 0.250000 spread 0.200000
reread seconds 1.000000 io 0.700000 barrier 0.250000 spread 0.300000
"""


@pytest.mark.parametrize(
    ("text", "tasks", "numbers"),
    [("", 16, [1, 2, 4, 8, 16]), (" ", 12, [1, 2, 4, 8, 12]), ("", 2, [1, 2]), ("1, 3,5", 5, [1, 3, 5])],
)
def test_limits_are_given_or_one_the_powers_of_two_and_all(text: str, tasks: int, numbers: list[int]) -> None:
    assert limits("readers", text, tasks) == numbers


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"readers": "0,4"}, "readers: expected different numbers from 1 to 4, got '0,4'"),
        ({"writers": "4,4"}, "writers: expected different numbers"),
        ({"readers": "1,2"}, "readers: 4 is missing"),
        ({"file_bytes": 4096}, "4 tasks with 2 parts need at least 32768 bytes"),
        ({"request_bytes": 1000}, "request_bytes a multiple of 512"),
    ],
)
def test_parameters_that_make_no_sweep_are_refused(parameters: dict[str, Any], message: str) -> None:
    grid: Any = None
    with pytest.raises(InvalidParameters, match=re.escape(message)):
        Probe(grid, checked_plan(Probe, {"target": ["t"]}, {**SMALL, **parameters}))


def test_the_output_of_the_kernel_is_parsed() -> None:
    total, phases = parse_streams(PRINTED, "iu")
    assert total == 3.0
    assert [phase.io_seconds for phase in phases.values()] == [0.5, 0.6, 0.7]


@pytest.mark.parametrize(
    "text", ["", "total 3.0\n", PRINTED[:-10], PRINTED.replace("reread", "read"), PRINTED + "more\n"]
)
def test_unusable_output_of_the_kernel_is_a_failure(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of streams at iu"):
        parse_streams(text, "iu")


def test_a_run_times_every_setting_and_leaves_no_file(tmp_path: Path) -> None:
    report = run_locally("streams", tmp_path, SMALL)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    settings = {
        name.rpartition(".seconds")[0] for name in values if re.fullmatch(r"[^.]+\.[^.]+\.seconds", name)
    }
    assert settings == {f"streams.readers={r},writers={w}" for r in (1, 2, 4) for w in (1, 2, 4)}
    for setting in settings:
        parts = ("io", "barrier", "spread", "write", "read")
        times = {name: values[f"{setting}.{name}.seconds"] for name in parts}
        assert min(times.values()) >= 0
        assert times["io"] + times["barrier"] <= values[f"{setting}.seconds"] * 1.01
        # Of a phase, the slowest task counts: on a busy machine the phases of different tasks overlap.
        assert times["io"] + times["barrier"] <= (times["write"] + times["read"]) * 1.01
        assert times["write"] <= values[f"{setting}.seconds"] * 1.01
    assert (values["streams.pass"], values["streams.measured"], values["streams.remaining"]) == (1, 9, 0)
    assert [file for file in tmp_path.rglob("at-target/scratch/**/*") if file.is_file()] == []


class OneSetting(RunGrid):
    """The grid of a run whose limit leaves the time for the first setting."""

    def remaining_seconds(self) -> float:
        return 1.0


def test_runs_go_on_where_the_last_one_ended(tmp_path: Path) -> None:
    small = {**SMALL, "tasks": 2}  # four settings
    state = str(tmp_path / "state")
    first = run_locally("streams", tmp_path, small, tools=RunnerTools(grid=OneSetting), state_directory=state)
    second, third = (run_locally("streams", tmp_path, small, state_directory=state) for _ in range(2))
    done = [metrics(report) for report in (first, second, third)]
    assert [each["streams.measured"] for each in done] == [1, 3, 4]
    assert [each["streams.pass"] for each in done] == [1, 1, 2]
    assert not {name for name in done[0] if "=" in name} & {name for name in done[1] if "=" in name}


def test_cached_io_on_data_below_twice_the_memory_is_no_data(tmp_path: Path) -> None:
    report = run_locally("streams", tmp_path, {**SMALL, "cache": "cached"})
    assert report.outcome == "no_data"
    assert "needs data of at least twice the memory" in report.reason


def test_a_target_smaller_than_the_data_is_one_line_that_names_it(tmp_path: Path) -> None:
    report = run_locally("streams", tmp_path, {**SMALL, "file_bytes": 10**14})
    assert report.outcome == "failed"
    assert "free, needs 100.0 TB" in report.reason


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("streams"), "streams", ("-O2", "-std=gnu99", "-lpthread"))


@pytest.mark.parametrize(("readers", "writers"), [(1, 1), (1, 8), (3, 2), (8, 8)])
def test_the_kernel_ends_with_any_number_of_tokens(
    kernel: Path, tmp_path: Path, readers: int, writers: int
) -> None:
    text = run_kernel(kernel, tmp_path / "f", 8, 3, 8192, 4096, 0, readers, writers, 0.001)
    total, phases = parse_streams(text, "here")
    assert total >= 0.009
    assert all(phase.spread_seconds <= phase.seconds for phase in phases.values())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "usage: streams FILES"),
        (["x", 2, 1, 4096, 4096, 0, 3, 1, 0], "READERS: 3 is not a number from 1 to 2"),
        (["x", 2, 1, 4096, 4096, 0, 1, 0, 0], "WRITERS: 0 is not a number from 1 to 2"),
        (["x", 0, 1, 4096, 4096, 0, 1, 1, 0], "TASKS: 0 is not a number"),
    ],
)
def test_the_kernel_refuses_what_it_cannot_do(kernel: Path, argv: list[object], message: str) -> None:
    assert message in refusal(kernel, *argv)


def test_a_task_that_fails_ends_the_others_at_their_barrier(kernel: Path, tmp_path: Path) -> None:
    (tmp_path / "f.1").mkdir()  # one of three tasks cannot open its file
    assert refusal(kernel, tmp_path / "f", 3, 2, 4096, 4096, 0, 1, 1, 0).endswith("f.1: Is a directory\n")
