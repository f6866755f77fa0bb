"""Stream: parsing the output of its kernel, invalid arguments, and runs through a batch system."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from probes.base import ProbeFailed
from probes.common.kernels import kernel_source
from probes.stream import Loop, parse_result
from tests.probes.runs import install, logged, metrics, run_locally, units

PRINTED = """\
cache 33554432
array 134217728
copy 268435456 0.008373472 0.008584974 0.008970794
scale 268435456 0.007836560 0.008359669 0.009049411
add 402653184 0.013166608 0.013667889 0.014486759
triad 402653184 0.012629967 0.013259834 0.013966763
"""
SMALL = {"array_bytes": 200_000, "repetitions": 5}


def test_the_output_of_the_kernel_is_parsed() -> None:
    result = parse_result(PRINTED, "iu")
    assert (result.cache_bytes, result.array_bytes) == (33_554_432, 134_217_728)
    assert result.loops["triad"] == Loop(402_653_184, 0.012629967, 0.013259834, 0.013966763)


@pytest.mark.parametrize(
    "text", ["", "cache\n", PRINTED[:-20], PRINTED.replace("triad", "trial"), PRINTED.replace("0.01", "fast")]
)
def test_incomplete_output_is_unreadable(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of stream at iu"):
        parse_result(text, "iu")


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_run_measures_four_loops_and_leaves_no_file(tmp_path: Path, tasks: int) -> None:
    report = run_locally("stream", tmp_path, {**SMALL, "tasks": tasks})
    assert report.outcome == "passed", report.reason
    rates = {name: value for name, value in metrics(report).items() if "per_second" in name}
    assert list(rates) == [f"{loop}.bytes_per_second" for loop in ("copy", "scale", "add", "triad")]
    assert all(rate > 0 for rate in rates.values())
    assert metrics(report)["array.bytes"] == pytest.approx(200_000, abs=8 * tasks)
    assert units(report)["triad.bytes_per_second"] == "bytes_per_second"
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_arrays_that_fit_in_the_caches_are_warned_about(tmp_path: Path) -> None:
    report = run_locally("stream", tmp_path, SMALL)
    if metrics(report)["cache.bytes"] == 0:
        pytest.skip("this host does not report the sizes of its caches")
    assert any("rates include the caches" in line for line in logged(report, "warning"))


def test_a_job_that_runs_out_of_memory_fails_the_run(tmp_path: Path) -> None:
    killing = {"kind": "fork", "launcher": ["sh", "-c", 'ulimit -v 100000; exec "$@"', "sh"]}
    report = run_locally("stream", tmp_path, {"array_bytes": 500_000_000}, resource={"batch": killing})
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "compute")
    assert "stream: cannot allocate memory: Cannot allocate memory" in report.reason


def test_a_job_with_incomplete_output_fails_the_run(tmp_path: Path) -> None:
    install(tmp_path, "cc", 'printf "#!/bin/sh\\necho cache 0" > "$5"; chmod +x "$5"')
    report = run_locally("stream", tmp_path, SMALL)
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "compute")
    assert "unreadable output of stream at at-target" in report.reason


@pytest.fixture(scope="module")
def broken_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel with an error in one loop, compiled with all warnings."""
    directory = tmp_path_factory.mktemp("stream")
    right, wrong = "a[i] = b[i] + SCALAR * c[i];", "a[i] = b[i] + SCALAR * c[i] + (i == size - 1);"
    assert right in kernel_source("stream")
    (directory / "stream.c").write_text(kernel_source("stream").replace(right, wrong))
    strict = ["-std=gnu99", "-O3", "-Wall", "-Wextra", "-Werror", "-pthread"]
    subprocess.run(["cc", *strict, "-o", "stream", "stream.c", "-lm"], cwd=directory, check=True)
    return directory / "stream"


def run_kernel(kernel: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(kernel), *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("tasks", ["1", "2"])
def test_one_wrong_element_is_detected_and_located(broken_kernel: Path, tasks: str) -> None:
    done = run_kernel(broken_kernel, "100000", "2", tasks)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"stream: wrong result: a[{100000 // 8 // int(tasks) - 1}] is " in done.stderr


def test_the_kernel_fails_if_it_cannot_write_its_output(broken_kernel: Path) -> None:
    correct_kernel = broken_kernel.with_name("correct")
    correct_kernel.with_suffix(".c").write_text(kernel_source("stream"))
    subprocess.run(
        ["cc", "-std=gnu99", "-O1", "-pthread", "-o", correct_kernel, f"{correct_kernel}.c", "-lm"],
        check=True,
    )
    with Path("/dev/full").open("w") as full:
        argv = [str(correct_kernel), "100000", "2", "1"]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "stream: cannot write the output: No space left on device\n",
    )


@pytest.mark.parametrize(
    "arguments", [["1", "2", "1"], ["100000", "1", "1"], ["100000", "2", "0"], ["-1", "2", "1"]]
)
def test_the_kernel_refuses_invalid_arguments(broken_kernel: Path, arguments: list[str]) -> None:
    assert run_kernel(broken_kernel, *arguments).returncode == 2
