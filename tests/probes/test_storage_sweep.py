"""Storage sweeps: runs that go on where the last one ended, privileged factors, and unsuitable storage."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import probes
from probes.base import InvalidParameters, checked_plan
from probes.common.privileged import parse_settings
from probes.common.storage_design import combinations
from reporters.grid import RunGrid
from reporters.report import Report
from reporters.run import RunnerTools
from tests.probes.kernels import build, refusal
from tests.probes.kernels import run as run_kernel
from tests.probes.runs import install, logged, metrics, run_locally
from tests.reporters.needs import needs
from tests.reporters.small_file_system import small_file_system

Probe = probes.load("storage_sweep")
BINDINGS = {"target": ["t"]}
SMALL: dict[str, Any] = {
    "request_bytes": "4096,65536",
    "pattern": "sequential,random,random-seek",
    "queue_depth": "1,4",
    "direction": "read,write",
    "file": "own,shared",
    "tasks": "2",
    "file_bytes": 524_288,
    "seconds": 0.01,
    "tool": "own",
}
TINY: dict[str, Any] = {
    **Probe.trial,
    "seconds": 0.01,
    "pattern": "sequential",
    "queue_depth": "1,2",
}  # four combinations
ONE: dict[str, Any] = {**TINY, "queue_depth": "1", "direction": "read"}  # one combination
SCHEDULER: dict[str, Any] = {
    "scheduler": {"levels": ["none", "bfq"], "set": "set-scheduler {level}", "read": "get-scheduler"}
}

Run = Callable[..., Report]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs of one series, with what they keep between them."""

    def running(parameters: dict[str, Any], **changes: Any) -> Report:
        state = str(tmp_path / "state")
        return run_locally("storage_sweep", tmp_path, parameters, state_directory=state, **changes)

    return running


def cells(report: Report) -> list[str]:
    return [name for name in metrics(report) if name.endswith(".bytes_per_second")]


def kept(directory: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((directory / "state" / "storage_sweep-test.state").read_text())
    return document


def files(directory: Path) -> list[Path]:
    return [file for file in (directory / "at-target" / "scratch").rglob("*") if not file.is_dir()]


def test_the_combinations_are_the_product_of_the_levels() -> None:
    plan = checked_plan(Probe, BINDINGS, {**SMALL, "settings": json.dumps(SCHEDULER)})
    chosen = combinations(plan, parse_settings(plan.text("settings")))
    assert len({each.metric() for each in chosen}) == len(chosen) == 2 * 3 * 2 * 2 * 1 * 2 * 1 * 2
    assert chosen[0].metric() == (
        "sweep.request_bytes=4096,pattern=sequential,queue_depth=1,direction=read,cache=direct,file=own,"
        "tasks=2,scheduler=none.bytes_per_second"
    )


def test_a_share_is_always_the_same_part_of_the_combinations() -> None:
    plan = checked_plan(Probe, BINDINGS, {**SMALL, "share": 0.25})
    part = combinations(plan, [])
    assert len(part) == 12
    assert part == combinations(plan, [])
    other = checked_plan(Probe, BINDINGS, {**SMALL, "share": 0.25, "seed": 2})
    assert part != combinations(other, [])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"pattern": "sequential,zigzag"},
            "pattern: expected one of sequential, random, random-seek, got 'zigzag'",
        ),
        ({"pattern": "random,random"}, "pattern: a level occurs twice"),
        ({"direction": ""}, "direction: expected one of read, write, got ''"),
        ({"request_bytes": "1000"}, "request_bytes: expected multiples of 512"),
        ({"request_bytes": "4096,-1"}, "request_bytes: expected whole numbers from 1"),
        ({"queue_depth": "1e3"}, "queue_depth: expected whole numbers from 1 to 1024"),
        ({"tasks": "0"}, "tasks: expected whole numbers from 1 to 256"),
        ({"file_bytes": 100_000, "tasks": "2"}, "2 tasks with requests of 65536 bytes need at least 131072"),
        ({"engine": "psync", "queue_depth": "1,2"}, "engine: psync has one request in flight"),
        ({"passes": 5}, "passes: expected 6 to 1000, got 5"),
        ({"queue_depth": ",".join(map(str, range(1, 1025))), "tasks": "1,2,3,4,5,6,7,8,9"}, "are more than"),
        ({"settings": "["}, "settings: expected JSON"),
        ({"settings": "[]"}, "settings: expected an object"),
        ({"settings": '{"Not a name": {}}'}, "settings: Not a name: expected a name"),
        (
            {"settings": '{"a": {"levels": ["1"]}}'},
            "settings: a: expected an object with levels, set and read",
        ),
        (
            {"settings": '{"a": {"levels": [], "set": "s {level}", "read": "r"}}'},
            "settings: a: levels: expected different texts",
        ),
        (
            {"settings": '{"a": {"levels": ["1", "-n"], "set": "s {level}", "read": "r"}}'},
            "settings: a: levels: expected a text of letters, digits",
        ),
        (
            {"settings": '{"a": {"levels": ["1"], "set": "s", "read": "r"}}'},
            "settings: a: set: expected an argument with {level}",
        ),
        (
            {"settings": '{"a": {"levels": ["1"], "set": "s {level} \'", "read": "r"}}'},
            "settings: a: set: No closing quotation",
        ),
        (
            {"settings": '{"a": {"levels": ["1"], "set": "s {level}", "read": ""}}'},
            "settings: a: read: expected a command",
        ),
        (
            {"settings": '{"tasks": {"levels": ["1"], "set": "s {level}", "read": "r"}}'},
            "settings: tasks is a parameter of the probe",
        ),
    ],
)
def test_parameters_that_make_no_sweep_are_refused(parameters: dict[str, Any], message: str) -> None:
    grid: Any = None
    with pytest.raises(InvalidParameters, match=re.escape(message)):
        Probe(grid, checked_plan(Probe, BINDINGS, {**SMALL, **parameters}))


@pytest.mark.parametrize("tool", ["own", "fio"])
def test_a_run_measures_every_combination_of_a_pass(run: Run, tmp_path: Path, tool: str) -> None:
    if tool == "fio":
        needs("fio")
    levels = {
        "pattern": "random,random-seek",
        "request_bytes": "4096",
        "queue_depth": "2",
        "direction": "write",
    }
    report = run({**SMALL, **(levels if tool == "fio" else {}), "tool": tool})
    assert report.outcome == "passed", report.reason
    assert len(cells(report)) == (4 if tool == "fio" else 48)
    values = metrics(report)
    assert all(values[name] > 0 for name in cells(report))
    assert (values["sweep.pass"], values["sweep.remaining"]) == (1, 0)
    assert values["sweep.measured"] == len(cells(report))
    assert 0 < values["sweep.measuring.share"] < 1
    assert files(tmp_path) == []


def test_runs_go_on_where_the_last_one_ended_and_begin_a_new_sweep_after_the_last_pass(run: Run) -> None:
    passes = [metrics(run(TINY)) for _ in range(7)]
    assert [each["sweep.pass"] for each in passes] == [1, 2, 3, 4, 5, 6, 1]
    assert len({each["sweep.began"] for each in passes[:6]}) == 1
    orders = [[name for name in each if "=" in name] for each in passes[:6]]
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    assert len(set(map(tuple, orders))) > 1


class ShortRun(RunGrid):
    """The grid of a run whose limit leaves the time for one measurement."""

    asked = 0

    def remaining_seconds(self) -> float:
        self.asked += 1
        return 1000.0 if self.asked == 1 else 1.0


def test_a_run_measures_what_its_limit_allows_and_the_next_the_rest(run: Run) -> None:
    report = run(TINY, tools=RunnerTools(grid=ShortRun))
    assert report.outcome == "passed", report.reason
    first = cells(report)
    assert len(first) == 1
    assert metrics(report)["sweep.remaining"] == 3
    second = run(TINY)
    assert len(cells(second)) == 3
    assert metrics(second)["sweep.pass"] == 1
    assert {*first, *cells(second)} == {*cells(run(TINY))}


def test_a_limit_without_the_time_for_a_measurement_is_an_error_that_says_so(run: Run) -> None:
    report = run({**TINY, "seconds": 3600.0})
    assert report.outcome == "failed"
    assert re.search(r"the run's limit leaves \d+\.\d s .*a measurement needs 3602\.0 s", report.reason)


def test_warm_up_runs_are_no_step_of_a_sweep(run: Run) -> None:
    assert metrics(run(ONE, warm_up_runs=1))["sweep.pass"] == 1
    assert metrics(run(ONE))["sweep.pass"] == 2


def test_other_parameters_begin_a_new_sweep(run: Run) -> None:
    run(ONE)
    assert metrics(run(ONE))["sweep.pass"] == 2
    assert metrics(run({**ONE, "seconds": 0.011}))["sweep.pass"] == 1


def test_a_damaged_state_begins_a_new_sweep_with_a_warning(run: Run, tmp_path: Path) -> None:
    run(ONE)
    (tmp_path / "state" / "storage_sweep-test.state").write_text("{", encoding="ascii")
    report = run(ONE)
    assert metrics(report)["sweep.pass"] == 1
    assert any("a new sweep begins" in line for line in logged(report, "warning"))


def test_a_reporter_that_keeps_nothing_measures_the_first_pass_each_time(tmp_path: Path) -> None:
    for _ in range(2):
        assert metrics(run_locally("storage_sweep", tmp_path, ONE))["sweep.pass"] == 1


# The operator's commands: a scheduler in a file, which refuses one that the "kernel" lacks.
SET = """
case $1 in none | bfq | kyber) echo "$1" > {file} && exit ;; esac
echo "set-scheduler: $1: Invalid argument" >&2
exit 1
"""
GET = "sed 's/.*/mq-deadline [&] other/' {file}"


@pytest.fixture
def scheduler(tmp_path: Path) -> Path:
    """The file with the present scheduler, kyber, which the operator's commands set and read."""
    file = tmp_path / "scheduler"
    file.write_text("kyber\n", encoding="ascii")
    install(tmp_path, "set-scheduler", SET.format(file=file))
    install(tmp_path, "get-scheduler", GET.format(file=file))
    return file


WITH_SCHEDULER: dict[str, Any] = {**ONE, "settings": json.dumps(SCHEDULER)}


def test_a_privileged_factor_is_set_for_each_combination_and_restored(
    run: Run, tmp_path: Path, scheduler: Path
) -> None:
    report = run(WITH_SCHEDULER)
    assert report.outcome == "passed", report.reason
    assert {re.findall(r"scheduler=(\w+)", name)[0] for name in cells(report)} == {"none", "bfq"}
    assert scheduler.read_text() == "kyber\n"
    assert kept(tmp_path)["restore"] is None


def test_what_a_killed_run_has_left_is_restored_by_the_next(
    run: Run, tmp_path: Path, scheduler: Path
) -> None:
    run(WITH_SCHEDULER)
    (tmp_path / "state" / "storage_sweep-test.state").write_text(
        json.dumps({**kept(tmp_path), "restore": {"scheduler": "kyber"}}), encoding="ascii"
    )
    scheduler.write_text("bfq\n", encoding="ascii")
    report = run(WITH_SCHEDULER)
    assert "restoring what a killed run has left: scheduler kyber" in logged(report, "info")
    assert metrics(report)["sweep.pass"] == 2
    assert scheduler.read_text() == "kyber\n"


def test_a_level_that_the_kernel_lacks_is_one_line_that_names_it(run: Run, scheduler: Path) -> None:
    lacking = {"scheduler": {**SCHEDULER["scheduler"], "levels": ["none", "cfq"]}}
    report = run({**WITH_SCHEDULER, "settings": json.dumps(lacking)})
    assert report.outcome == "failed"
    assert report.reason.splitlines() == [
        "init at at-target failed: "
        "cannot set scheduler to cfq at at-target: set-scheduler: cfq: Invalid argument"
    ]
    assert scheduler.read_text() == "kyber\n"


def test_a_command_that_sets_nothing_is_found_out(run: Run, tmp_path: Path, scheduler: Path) -> None:
    install(tmp_path, "set-scheduler", "true")
    report = run(WITH_SCHEDULER)
    assert (
        "cannot set scheduler to none at at-target: no error, but get-scheduler reads kyber" in report.reason
    )
    assert scheduler.read_text() == "kyber\n"


def test_no_shell_sees_the_operators_commands(run: Run, tmp_path: Path, scheduler: Path) -> None:
    settings = {"scheduler": {**SCHEDULER["scheduler"], "read": "get-scheduler ; touch spoilt"}}
    install(tmp_path, "get-scheduler", f'[ "$1" = ";" ] && cat {scheduler}')
    report = run({**WITH_SCHEDULER, "settings": json.dumps(settings)})
    assert report.outcome == "passed", report.reason


def test_a_reporter_that_keeps_nothing_sets_nothing(tmp_path: Path, scheduler: Path) -> None:
    install(tmp_path, "set-scheduler", f"echo spoilt > {scheduler}")
    report = run_locally("storage_sweep", tmp_path, WITH_SCHEDULER)
    assert "a kill would leave them changed" in report.reason
    assert scheduler.read_text() == "kyber\n"


def test_a_target_smaller_than_the_data_is_one_line_that_names_it(run: Run) -> None:
    report = run({**TINY, "file_bytes": 10**14})
    assert report.outcome == "failed"
    assert re.fullmatch(
        r"init at at-target failed: scratch .* at at-target has .* free, needs 100.*B", report.reason
    )


# Fills the file system in mid-sweep, and leaves the sweep's file without blocks, so that a write needs some.
FILL = """
echo "$1" > {here}/load
file=$(find {scratch} -name 'sweep1.*')
[ "$1" = full ] && [ -n "$file" ] || exit 0
truncate -s 0 "$file" && truncate -s 1048576 "$file"
dd if=/dev/zero of={scratch}/theirs bs=1024 2> /dev/null
exit 0
"""


def test_a_disk_that_is_full_in_mid_sweep_is_one_line_and_the_next_run_goes_on(
    run: Run, tmp_path: Path
) -> None:
    scratch = tmp_path / "at-target" / "scratch"
    scratch.mkdir(parents=True)
    (tmp_path / "load").write_text("usual\n", encoding="ascii")
    install(tmp_path, "set-load", FILL.format(here=tmp_path, scratch=scratch))
    load = {
        "load": {
            "levels": ["usual", "full", "light"],
            "set": "set-load {level}",
            "read": f"cat {tmp_path}/load",
        }
    }
    writes = {**TINY, "direction": "write", "settings": json.dumps(load)}
    with small_file_system(scratch, 4, mode="1777"):
        report = run(writes)
        assert [file.name for file in files(tmp_path)] == ["theirs"]
    assert report.outcome == "failed"
    assert re.fullmatch(
        r"sweep at at-target failed: cannot measure sequential writes of 65536 bytes, depth [12], "
        r"1 tasks, direct, own file, load full at "
        r"at-target: cannot write \S+: No space left on device",
        report.reason,
    )
    measured = metrics(report).get("sweep.measured", 0)
    assert measured == len(cells(report))
    assert (kept(tmp_path)["position"] or {"done": 0})["done"] == measured


def test_cached_io_on_data_below_twice_the_memory_is_no_data(run: Run, tmp_path: Path) -> None:
    memory = "case $1 in _PHYS_PAGES) echo {pages} ;; *) echo 4096 ;; esac"
    cached = {**ONE, "cache": "cached"}  # a MiB
    install(tmp_path, "getconf", memory.format(pages=129))
    report = run(cached)
    assert report.outcome == "no_data"
    assert "needs data of at least twice the memory, 1056768 bytes" in report.reason
    install(tmp_path, "getconf", memory.format(pages=128))
    assert run(cached).outcome == "passed"
    install(tmp_path, "getconf", "exit 1")
    assert "whose size is unknown" in run(cached).reason


def test_a_file_system_without_direct_io_has_no_data(run: Run, tmp_path: Path) -> None:
    refuse = 'case $* in *prepare*) echo "sweep: cannot open x: Invalid argument" >&2; exit 3 ;; esac'
    install(
        tmp_path,
        "cc",
        f'for word; do out=$word; [ "$was" = -o ] && break; was=$word; done\n'
        f"printf '#!/bin/sh\\n%s\\n' '{refuse}' > $out; chmod +x $out",
    )
    report = run(TINY)
    assert (report.outcome, report.reason) == (
        "no_data",
        "does not apply here: direct I/O at at-target is refused: cannot write the files (Invalid argument)",
    )


def test_fio_goes_on_with_libaio_where_the_kernel_refuses_io_uring(run: Run, tmp_path: Path) -> None:
    needs("fio")
    refusal = "fio: pid=0, err=1/file:engines/io_uring.c:1, func=io_queue_init, error=Operation not permitted"
    job = json.dumps({"jobs": [{"error": 1, "read": {"total_ios": 0, "io_bytes": 0, "runtime": 0}}]})
    install(
        tmp_path,
        "fio",
        f"case $* in *io_uring*) echo '{refusal}'; echo '{job}'; exit 1 ;; esac\nexec /usr/bin/fio \"$@\"",
    )
    report = run({**TINY, "tool": "auto", "direction": "read", "seconds": 0.05})
    assert report.outcome == "passed", report.reason
    assert "measured by fio with libaio" in logged(report, "info")
    forced = run({**TINY, "tool": "fio", "engine": "io_uring", "direction": "read"})
    assert "fio cannot use io_uring at at-target: Operation not permitted" in forced.reason


def test_no_tool_is_one_line_that_names_what_is_missing(run: Run, tmp_path: Path) -> None:
    shell = {"kind": "local", "path": str(tmp_path / "at-target" / "bin")}
    for program in (
        "sh",
        "mktemp",
        "rmdir",
        "df",
        "id",
        "stat",
        "true",
        "rm",
        "mkdir",
        "cat",
        "readlink",
        "ls",
    ):
        install(tmp_path, program, f'exec /usr/bin/{program} "$@"')
    for tool, message in (("auto", "cc is not installed"), ("fio", "fio is not installed")):
        report = run({**TINY, "tool": tool}, resource={"shell": shell})
        assert (report.outcome, report.reason) == (
            "failed",
            f"init at at-target failed: {message} at at-target",
        )


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sweep"), "sweep", ("-O2", "-std=gnu99", "-lpthread"))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["measure"], "usage: sweep prepare"),
        (["prepare", "/nowhere/x", 1, 4096, 0], "cannot open /nowhere/x.0: No such file or directory"),
        (["prepare", "x", 0, 4096, 0], "COUNT: 0 is not a number from 1 to 256"),
        (["measure", "read", "zigzag", 4096, 1, 0, 1, 4096, 0, "x", 1, 1], "PATTERN: zigzag is unknown"),
        (["measure", "read", "random", 4096, 1, 0, 1, 512, 0, "x", 1, 1], "must be at least REQUEST_BYTES"),
    ],
)
def test_the_kernel_refuses_what_it_cannot_do(kernel: Path, argv: list[object], message: str) -> None:
    assert message in refusal(kernel, *argv)


def test_the_kernel_reads_no_further_than_its_part(kernel: Path, tmp_path: Path) -> None:
    files = tmp_path / "f"
    assert run_kernel(kernel, "prepare", files, 1, 16384, 0) == ""
    for pattern in ("sequential", "random", "random-seek"):
        text = run_kernel(kernel, "measure", "read", pattern, 4096, 2, 0, 2, 8192, 1, files, 0.01, 1)
        operations, size, seconds = text.split()
        assert int(size) == 4096 * int(operations) > 0
        assert float(seconds) > 0
    Path(f"{files}.0").write_bytes(b"short")
    message = refusal(kernel, "measure", "read", "sequential", 4096, 1, 0, 1, 8192, 1, files, 0.01, 1)
    assert "Input/output error" in message
