"""The runner: a report in every case, the cleanup in every case."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from probes.base import Measurement, NoData, OutOfTime, Parameter, ProbeFailed, Role, Stage, UnknownProbe
from reporters.config import Assignment, ResourceConfig
from reporters.report import MOST_METRICS, MetricValue, Report, from_json, to_json
from reporters.run import RunnerTools, run
from reporters.usage import ResourceUsage

SLOT = datetime(2026, 3, 1, 12, 7, tzinfo=UTC)


class FakeShell:
    """A shell that prints the load of its resource."""

    def __init__(self, loadavg: str) -> None:
        self.loadavg = loadavg

    def check(self, argv: list[str], **_: object) -> str:
        assert argv == ["cat", "/proc/loadavg"]
        return self.loadavg


class FakeGrid:
    """A grid that counts its cleanups and raises *trouble* in the first."""

    def __init__(self, log: Callable[[str, str], None], deadline: Any) -> None:
        self.log = log
        self.deadline = deadline
        self.cleaned = 0
        self.left = 0
        self.trouble: Exception | None = None
        self.loads: dict[str, str] = {}

    def shell(self, resource: str) -> FakeShell:
        return FakeShell(self.loads[resource])

    def usage(self) -> dict[str, ResourceUsage]:
        return {"one": ResourceUsage(bytes_sent=10, cpu_seconds=2.0)}

    def survivors(self) -> int:
        return self.left

    def clean_up(self) -> None:
        self.cleaned += 1
        if self.trouble is not None:
            trouble, self.trouble = self.trouble, None
            raise trouble


class FakeProbe:
    """A probe whose stages are set by a test: ``does["work"] = function``."""

    kind = "grid"
    version = "7"
    summary = "a fake"
    roles = {"at": Role(1, 1, "where")}
    parameters = {"size": Parameter(5, "of it")}
    stages = (
        Stage("init", "setup"),
        Stage("work", "compute"),
        Stage("send", "transfer"),
        Stage("cleanup", "cleanup"),
    )
    does: dict[str, Callable[[FakeGrid], list[Measurement] | None]]

    def __init__(self, grid: FakeGrid, plan: Any) -> None:
        self.grid, self.plan = grid, plan
        self._do("constructor")

    def init(self) -> list[Measurement] | None:
        return self._do("init")

    def work(self) -> list[Measurement] | None:
        return self._do("work")

    def send(self) -> list[Measurement] | None:
        return self._do("send")

    def cleanup(self) -> list[Measurement] | None:
        if "cleanup" not in self.does:
            self.grid.clean_up()
        return self._do("cleanup")

    def _do(self, stage: str) -> list[Measurement] | None:
        return self.does[stage](self.grid) if stage in self.does else None


class Bench:
    """Runs the fake probe on a fake grid, with a clock that advances a second at each reading."""

    def __init__(self) -> None:
        self.grids: list[FakeGrid] = []
        self.ticks = itertools.count()
        self.entered: list[str] = []
        self.trouble_in_cleanup: Exception | None = None
        self.loads = {"one": "0.00 0.00 0.00 1/1 1\n"}
        self.left = 0

    def run(
        self,
        does: dict[str, Callable[[FakeGrid], list[Measurement] | None]] | None = None,
        *,
        on_stage: Callable[[str], None] | None = None,
        load: Callable[[str], Any] | None = None,
        **changes: Any,
    ) -> Report:
        probe = type("Probe", (FakeProbe,), {"does": does or {}, "__module__": __name__})
        values: dict[str, Any] = {
            "series": "fake-main", "slot": SLOT, "reporter": "home", "probe": "fake",
            "bindings": {"at": ["one"]}, "resources": {"one": ResourceConfig("one", "one", "/scratch")},
            "limit_seconds": 1000.0, "cleanup_seconds": 60.0,
        }  # fmt: skip
        tools = RunnerTools(
            load=load or (lambda _name: probe),
            grid=self._grid,
            monotonic=lambda: float(next(self.ticks)),
            now=lambda: SLOT,
        )
        report = run(
            Assignment(**{**values, **changes}), on_stage=on_stage or self.entered.append, tools=tools
        )
        assert from_json(to_json(report)) == report
        return report

    def _grid(self, _assignment: Assignment, deadline: Any, log: Callable[[str, str], None]) -> FakeGrid:
        self.grids.append(FakeGrid(log, deadline))
        self.grids[-1].trouble = self.trouble_in_cleanup
        self.grids[-1].loads = self.loads
        self.grids[-1].left = self.left
        return self.grids[-1]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def raising(error: BaseException) -> Callable[[FakeGrid], None]:
    def work(_grid: FakeGrid) -> None:
        raise error

    return work


def test_a_run_that_passes_has_every_stage_in_order(bench: Bench) -> None:
    report = bench.run()
    assert report.outcome == "passed"
    assert [(stage.name, stage.category) for stage in report.stages] == [
        ("init", "setup"), ("work", "compute"), ("send", "transfer"), ("cleanup", "cleanup")
    ]  # fmt: skip
    assert bench.entered == ["init", "work", "send", "cleanup"]
    assert all(stage.seconds > 0 for stage in report.stages)
    starts = [stage.started_after_seconds for stage in report.stages]
    assert starts == sorted(starts)
    assert report.seconds >= starts[-1] + report.stages[-1].seconds


def test_metrics_and_defaults_are_in_the_report(bench: Bench) -> None:
    report = bench.run({"work": lambda _grid: [Measurement("speed", 3, "bytes_per_second")]})
    assert [(metric.name, metric.value, metric.unit) for metric in report.metrics] == [
        ("speed", 3.0, "bytes_per_second")
    ]
    assert report.parameters == {"size": 5}


def test_a_report_has_the_bindings_of_its_run(bench: Bench) -> None:
    assert bench.run().bindings == {"at": ("one",)}


def test_the_probe_is_identified_down_to_its_source(bench: Bench) -> None:
    report = bench.run()
    sha256 = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    assert (report.probe.name, report.probe.version, report.probe.sha256) == ("fake", "7", sha256)


def test_a_stage_that_fails_is_the_last_before_the_cleanup(bench: Bench) -> None:
    report = bench.run({"work": raising(ProbeFailed("no", resource="one"))})
    assert (report.outcome, report.reason) == ("failed", "work at one failed: no")
    assert [stage.name for stage in report.stages] == ["init", "work", "cleanup"]
    assert bench.grids[0].cleaned >= 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (OutOfTime("late"), "timed_out"),
        (NoData("none"), "no_data"),
        (ProbeFailed("no"), "failed"),
        (RuntimeError("bug"), "broken"),
    ],
)
def test_every_exception_becomes_an_outcome_and_is_followed_by_the_cleanup(
    bench: Bench, error: Exception, outcome: str
) -> None:
    assert bench.run({"init": raising(error)}).outcome == outcome
    assert bench.grids[0].cleaned >= 1


def test_the_traceback_of_a_bug_is_in_the_log(bench: Bench) -> None:
    report = bench.run({"work": lambda _grid: [1 / 0]})  # type: ignore[list-item]  # our own bug
    assert report.reason == "work broke: ZeroDivisionError: division by zero"
    assert any("Traceback" in line.text and "test_run.py" in line.text for line in report.log)


def test_the_sites_are_cleaned_up_after_a_broken_cleanup_stage(bench: Bench) -> None:
    report = bench.run({"cleanup": raising(KeyError("oops"))})
    assert (report.outcome, report.reason) == ("broken", "cleanup broke: KeyError: 'oops'")
    assert bench.grids[0].cleaned == 1


def test_a_failure_in_the_cleanup_alone_fails_the_run(bench: Bench) -> None:
    bench.trouble_in_cleanup = ProbeFailed("busy", resource="one")
    report = bench.run()
    assert (report.outcome, report.reason) == ("failed", "cleanup at one failed: busy")


def test_the_first_failure_stays_when_the_cleanup_fails_too(bench: Bench) -> None:
    bench.trouble_in_cleanup = ProbeFailed("busy", resource="one")
    report = bench.run({"work": raising(ProbeFailed("first"))})
    assert report.reason == "work failed: first"
    assert any("busy" in line.text for line in report.log)


def test_a_failing_constructor_is_followed_by_the_cleanup(bench: Bench) -> None:
    report = bench.run({"constructor": raising(ValueError("odd plan"))})
    assert (report.outcome, report.reason) == ("broken", "prepare broke: ValueError: odd plan")
    assert [stage.name for stage in report.stages] == ["cleanup"]
    assert bench.grids[0].cleaned == 1


def test_processes_that_had_to_be_killed_are_a_metric_of_the_run(bench: Bench) -> None:
    bench.left = 3
    assert bench.run().metrics[-1] == MetricValue("containment.survivors", 3.0, "processes")
    bench.left = 0
    assert "containment.survivors" not in {metric.name for metric in bench.run().metrics}


def test_an_unknown_probe_gives_a_report(bench: Bench) -> None:
    report = bench.run(load=raising(UnknownProbe("there is no probe 'x'")))  # type: ignore[arg-type]
    assert (report.outcome, report.probe.sha256) == ("broken", "")
    assert "there is no probe 'x'" in report.reason


def test_parameters_that_do_not_fit_are_named(bench: Bench) -> None:
    report = bench.run(parameters={"size": "big"})
    assert report.reason == "invalid parameters: size: expected an integer, got 'big'"


def test_no_stage_begins_after_the_limit(bench: Bench) -> None:
    report = bench.run(limit_seconds=0.5)
    assert (report.outcome, [stage.name for stage in report.stages]) == ("timed_out", ["init", "cleanup"])
    assert "the run's limit of 0.5 s was reached while beginning init" in report.reason
    assert bench.grids[0].cleaned >= 1


def test_the_cleanup_has_a_limit_of_its_own(bench: Bench) -> None:
    left: list[float] = []
    bench.run(
        {
            "work": raising(OutOfTime("late")),
            "cleanup": lambda grid: left.append(grid.deadline.remaining_seconds),
        },
        cleanup_seconds=60.0,
    )
    assert 50 < left[0] <= 60


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_metric_that_is_not_finite_breaks_the_run(bench: Bench, value: float) -> None:
    report = bench.run({"work": lambda _grid: [Measurement("speed", value, "seconds")]})
    assert (report.outcome, report.metrics) == ("broken", ())


def test_a_probe_with_more_metrics_than_a_report_may_have_breaks_the_run(bench: Bench) -> None:
    many = [Measurement(f"speed.{number}", 1, "seconds") for number in range(MOST_METRICS)]
    assert bench.run({"work": lambda _grid: many[1:]}).outcome == "passed"
    report = bench.run({"work": lambda _grid: many})
    assert (report.outcome, len(report.metrics)) == ("broken", MOST_METRICS - 1)
    assert "a report has at most 999 metrics of its probe" in report.reason


def test_a_metric_is_measured_once(bench: Bench) -> None:
    metric = Measurement("speed", 1, "seconds")
    report = bench.run({"init": lambda _grid: [metric], "work": lambda _grid: [metric]})
    assert "the metric speed is not finite or measured twice" in report.reason


def test_a_failing_listener_does_not_change_the_outcome(bench: Bench) -> None:
    report = bench.run(on_stage=raising(RuntimeError("gone")))  # type: ignore[arg-type]
    assert report.outcome == "passed"
    assert any("the listener for stages failed at init" in line.text for line in report.log)


def test_an_interrupted_run_is_cleaned_up_before_the_interrupt_propagates(bench: Bench) -> None:
    with pytest.raises(KeyboardInterrupt):
        bench.run({"work": raising(KeyboardInterrupt())})
    assert bench.grids[0].cleaned >= 1


def test_log_lines_of_the_probe_are_in_the_report(bench: Bench) -> None:
    report = bench.run({"work": lambda grid: grid.log("half way", "warning")})
    (line,) = [line for line in report.log if line.text == "half way"]
    assert line.level == "warning"
    assert line.seconds > 0


def test_an_unknown_level_becomes_info(bench: Bench) -> None:
    report = bench.run({"work": lambda grid: grid.log("x", "loud")})
    assert [line.level for line in report.log if line.text == "x"] == ["info"]


def test_the_environment_describes_the_reporters_host(bench: Bench) -> None:
    environment = bench.run().environment
    assert environment.tools["ssh"].startswith("OpenSSH")
    assert environment.python.startswith("3.")


def test_a_report_has_the_usage_of_its_run(bench: Bench) -> None:
    assert bench.run().usage == {"one": ResourceUsage(bytes_sent=10, cpu_seconds=2.0)}
    assert bench.run({"work": raising(ProbeFailed("no"))}).usage != {}
    assert bench.run(parameters={"size": "big"}).usage == {}


def test_a_run_is_skipped_while_the_load_is_above_its_limit(bench: Bench) -> None:
    bench.loads["one"] = "5.20 4.10 3.00 7/210 4242\n"
    report = bench.run({"constructor": raising(AssertionError("it was begun"))}, max_load1=4.0)
    assert (report.outcome, report.reason) == ("skipped", "load: 5.2 at one, at most 4 allowed")
    assert (report.failure, bench.entered) == (None, ["cleanup"])
    assert bench.grids[0].cleaned == 1


def test_a_run_begins_where_the_load_is_no_more_than_allowed(bench: Bench) -> None:
    bench.loads["one"] = "4.00 9.00 9.00 7/210 4242\n"
    assert bench.run(max_load1=4.0).outcome == "passed"


def test_warm_ups_are_complete_runs_whose_values_are_discarded(bench: Bench) -> None:
    speeds = iter([1.0, 2.0, 3.0])
    report = bench.run(
        {"work": lambda _grid: [Measurement("speed", next(speeds), "bytes_per_second")]}, warm_up_runs=2
    )
    assert [metric.value for metric in report.metrics] == [3.0]
    assert [grid.cleaned for grid in bench.grids] == [2, 2, 2]  # by the probe, by the runner
    assert bench.entered == ["init", "work", "send", "cleanup"] * 3
    assert [stage.name for stage in report.stages] == ["init", "work", "send", "cleanup"]
    assert report.stages[0].started_after_seconds < 10
    took = [line.text.partition(" took ")[0] for line in report.log if "discarded" in line.text]
    assert took == ["warm-up 1 of 2", "warm-up 2 of 2"]
    assert report.usage == {"one": ResourceUsage(bytes_sent=30, cpu_seconds=6.0)}


def test_a_warm_up_that_does_not_pass_ends_the_run_with_its_number(bench: Bench) -> None:
    def work(_grid: FakeGrid) -> None:
        if len(bench.grids) == 2:
            raise ProbeFailed("no", resource="one")

    report = bench.run({"work": work}, warm_up_runs=2)
    assert (report.outcome, report.reason) == ("failed", "warm-up 2 of 2: work at one failed: no")
    assert [stage.name for stage in report.stages] == ["init", "work", "cleanup"]
    assert len(bench.grids) == 2
    assert report.usage == {"one": ResourceUsage(bytes_sent=20, cpu_seconds=4.0)}


def test_the_limit_is_for_each_warm_up(bench: Bench) -> None:
    whole = bench.run().seconds
    assert bench.run(warm_up_runs=3, limit_seconds=whole + 1).outcome == "passed"


def test_the_load_is_not_checked_after_a_warm_up(bench: Bench) -> None:
    def work(_grid: FakeGrid) -> None:
        bench.loads["one"] = "9.00 0.00 0.00 1/1 1\n"

    assert bench.run({"work": work}, warm_up_runs=1, max_load1=4.0).outcome == "passed"
    skipped = bench.run(warm_up_runs=1, max_load1=4.0)
    assert (skipped.outcome, skipped.reason) == ("skipped", "load: 9 at one, at most 4 allowed")


def test_warnings_of_a_warm_up_are_in_the_log(bench: Bench) -> None:
    report = bench.run({"work": lambda grid: grid.log("slow disk", "warning")}, warm_up_runs=1)
    warned = [line.text for line in report.log if line.level == "warning"]
    assert warned == ["warm-up 1 of 1: slow disk", "slow disk"]
