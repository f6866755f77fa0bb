"""MADbench: what its kernel writes and verifies, what its runs measure, and how they fail."""

from __future__ import annotations

import fcntl
import re
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from probes.base import ProbeFailed
from probes.madbench import overall_metrics, parse_times, phase_metrics
from reporters.report import Report
from tests.probes.kernels import build, compiler_that_copies, refusal, run
from tests.probes.runs import install, metrics, run_locally
from tests.waiting import eventually

NO_PIX, NO_BIN = 19, 3
MATRICES_BYTES = 8 * 64 * 64 * 2
# Of a run with no_pix 64, no_bin 2, tasks 2, rmod 2.
TIMES = """\
phase S task 0 read 0 bytes in 0.000000 write 32768 bytes in 0.006000 wait 0.000008 busy 0.000092 seconds 0.006100
phase S task 1 read 0 bytes in 0.000000 write 32768 bytes in 0.007000 wait 0.001000 busy 0.000100 seconds 0.008100
phase W task 0 read 32768 bytes in 0.001000 write 32768 bytes in 0.002000 wait 0.000000 busy 0.000100 seconds 0.003100
phase W task 1 read 32768 bytes in 0.003000 write 32768 bytes in 0.001000 wait 0.000500 busy 0.000200 seconds 0.004700
phase C task 0 read 32768 bytes in 0.001000 write 0 bytes in 0.000000 wait 0.000000 busy 0.000100 seconds 0.001100
phase C task 1 read 32768 bytes in 0.001000 write 0 bytes in 0.000000 wait 0.001000 busy 0.000100 seconds 0.002100
"""  # noqa: E501


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the kernel."""
    directory = tmp_path_factory.mktemp("kernels")
    build(directory, "madbench")
    return directory


def command(built: Path, phase: str, file: object, task: int = 0, tasks: int = 1) -> list[object]:
    locks = [f"{built}/readers", f"{built}/writers"]
    return [built / "madbench", phase, file, NO_PIX, NO_BIN, task, tasks, 1.0, *locks]


def made(matrix: int) -> npt.NDArray[np.float64]:
    """What S writes: splitmix64 of each element's number among all, its upper 53 bits as a fraction."""
    with np.errstate(over="ignore"):
        z = np.arange(matrix * NO_PIX**2 + 1, (matrix + 1) * NO_PIX**2 + 1, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    upper = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
    return np.ldexp(upper.astype(np.float64), -53).reshape(NO_PIX, NO_PIX)


def test_the_tasks_write_their_rows_of_every_matrix_and_then_others_in_their_place(
    built: Path, tmp_path: Path
) -> None:
    expected = np.array([made(matrix) for matrix in range(NO_BIN)])
    for phase, values in (("S", expected), ("W", 0.5 - expected), ("C", 0.5 - expected)):
        parts = []
        for task, file in enumerate(tmp_path / f"matrices.{task}" for task in range(4)):
            run(*command(built, phase, file, task, 4))
            parts.append(np.fromfile(file).reshape(NO_BIN, -1, NO_PIX))
        assert np.array_equal(np.concatenate(parts, axis=1), values)


@pytest.mark.parametrize(("phases", "phase"), [("S", "W"), ("SW", "C")])
def test_a_flipped_bit_is_found_and_its_place_is_named(
    built: Path, tmp_path: Path, phases: str, phase: str
) -> None:
    for before in phases:
        run(*command(built, before, tmp_path / "matrices"))
    data = bytearray((tmp_path / "matrices").read_bytes())
    data[8 * (2 * NO_PIX**2 + 7 * NO_PIX + 5)] ^= 1
    (tmp_path / "matrices").write_bytes(data)
    said = refusal(*command(built, phase, tmp_path / "matrices"))
    assert "row 7, column 5 of matrix 2 was written as" in said


def test_matrices_that_changed_places_are_found(built: Path, tmp_path: Path) -> None:
    run(*command(built, "S", tmp_path / "matrices"))
    data, size = (tmp_path / "matrices").read_bytes(), 8 * NO_PIX**2
    (tmp_path / "matrices").write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])
    assert "row 0, column 0 of matrix 0" in refusal(*command(built, "W", tmp_path / "matrices"))


def test_a_file_that_ends_too_early_is_found(built: Path, tmp_path: Path) -> None:
    run(*command(built, "S", tmp_path / "matrices"))
    with (tmp_path / "matrices").open("r+b") as file:
        file.truncate(8 * NO_BIN * NO_PIX**2 - 1)
    assert "it ends too early" in refusal(*command(built, "W", tmp_path / "matrices"))


def test_a_full_disk_is_said_to_be_full(built: Path) -> None:
    assert "cannot write /dev/full: No space left on device" in refusal(*command(built, "S", "/dev/full"))


@pytest.mark.parametrize(
    ("position", "value", "said"),
    [
        (1, "D", "usage: madbench"),
        (3, 0, "NO_PIX: 0 is not a number from 1"),
        (4, "x", "NO_BIN: x"),
        (5, 1, "TASK: 1 is not a number from 0 to 0"),
        (6, 20, "TASKS: 20 is not a number from 1 to 19"),
        (7, 2.5, "BUSY_EXPONENT: 2.5"),
        (8, "/no/such", "cannot open /no/such: No such file or directory"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    built: Path, tmp_path: Path, position: int, value: object, said: str
) -> None:
    words = command(built, "S", tmp_path / "matrices")
    words[position] = value
    assert said in refusal(*words)


def test_of_tasks_with_one_lock_only_one_writes_at_a_time(built: Path, tmp_path: Path) -> None:
    with (built / "writers").open("w") as other:
        fcntl.lockf(other, fcntl.LOCK_EX)
        words = [str(word) for word in command(built, "S", tmp_path / "matrices")]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as task:
            waits = re.compile(rf"-> POSIX +ADVISORY +WRITE +{task.pid} ")
            assert eventually(lambda: waits.search(Path("/proc/locks").read_text()) is not None)
            assert (tmp_path / "matrices").stat().st_size == 0
            fcntl.lockf(other, fcntl.LOCK_UN)
            assert task.stdout is not None
            said = re.search(r"wait (\S+) ", task.stdout.read())
    assert task.returncode == 0
    assert said is not None
    assert float(said[1]) > 0


def test_one_matrix_at_a_time_is_in_memory(built: Path, tmp_path: Path) -> None:
    words = command(built, "S", tmp_path / "matrices")
    words[3], words[4] = 256, 24  # of 512 kB each
    run("sh", "-c", 'ulimit -v 8192 && exec "$@"', "sh", *words)
    assert (tmp_path / "matrices").stat().st_size > 8192 * 1024


def test_busy_work_grows_with_its_exponent(built: Path, tmp_path: Path) -> None:
    def busy_seconds(exponent: float) -> float:
        words = command(built, "S", tmp_path / "matrices")
        words[3], words[4], words[7] = 128, 1, exponent
        said = re.search(r"busy (\S+) ", run(*words))
        assert said is not None
        return float(said[1])

    little = min(busy_seconds(1.0) for _ in range(5))  # others may be in the way of some
    assert busy_seconds(2.0) > 3 * little  # 2.7e8 operations against 1.6e4


def run_madbench(directory: Path, built: Path, **changes: object) -> Report:
    """A small run whose site has a quick compiler, unless a test has put another there."""
    if not (directory / "at-compute" / "bin" / "cc").exists():
        install(directory, "cc", compiler_that_copies(built), "compute")
    return run_locally("madbench", directory, {"no_pix": 64, "no_bin": 2, **changes}, "compute")


def replacing_madbench(built: Path, script: str) -> str:
    """A compiler that makes *script* of the kernel, which is ``$real`` there."""
    (built / "instead").write_text(f"#!/bin/sh\nreal={built}/madbench\n{script}\n")
    (built / "instead").chmod(0o755)
    return compiler_that_copies(built, unless=f'cp {built}/instead "$out"; exit')


def test_a_run_measures_every_phase_and_all_of_them(built: Path, tmp_path: Path) -> None:
    report = run_madbench(tmp_path, built, tasks=3)
    assert report.outcome == "passed", report.reason
    measured = metrics(report)
    for phase, times in (("s", 1), ("w", 2), ("c", 1)):
        assert measured[f"madbench.{phase}.bytes"] == times * MATRICES_BYTES
        assert measured[f"madbench.{phase}.seconds"] >= measured[f"madbench.{phase}.busy.seconds"] > 0
        assert measured[f"madbench.{phase}.bytes_per_second"] == pytest.approx(
            times * MATRICES_BYTES / measured[f"madbench.{phase}.io.seconds"]
        )
    assert measured["madbench.bytes"] == 4 * MATRICES_BYTES
    assert measured["madbench.bytes_per_second"] > 0


def test_more_tasks_than_rows_are_as_many_as_rows(built: Path, tmp_path: Path) -> None:
    report = run_madbench(tmp_path, built, no_pix=3, no_bin=1, tasks=20)
    assert report.outcome == "passed", report.reason
    assert metrics(report)["madbench.bytes"] == 4 * 8 * 9


def test_neighbouring_tasks_share_locks_as_asked(built: Path, tmp_path: Path) -> None:
    note = f'echo "$1 $5 $8 $9" >> {tmp_path}/noted; exec $real "$@"'
    install(tmp_path, "cc", replacing_madbench(built, note), "compute")
    report = run_madbench(tmp_path, built, tasks=4, rmod=2, wmod=3)
    assert report.outcome == "passed", report.reason
    noted = sorted(line for line in (tmp_path / "noted").read_text().splitlines() if line.startswith("W"))
    assert noted == [
        "W 0 readers.0 writers.0",
        "W 1 readers.0 writers.0",
        "W 2 readers.1 writers.0",
        "W 3 readers.1 writers.1",
    ]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('case $1$5 in W1) kill -9 $$ ;; esac; exec $real "$@"', "task 1 of phase W failed with status 137"),
        ('$real "$@" > /dev/null; echo done', "unreadable output of madbench at at-compute: 'done\\ndone"),
        ('case $1 in C) : > $2 ;; esac; exec $real "$@"', "cannot read matrices.0: it ends too early"),
        ('case $1 in C) printf x | dd of=$2 bs=1 seek=80 conv=notrunc status=none ;; esac; exec $real "$@"',
         "row 0, column 10 of matrix 0 was written as"),
    ],
)  # fmt: skip
def test_a_task_that_does_not_do_its_work_is_noticed(
    built: Path, tmp_path: Path, script: str, said: str
) -> None:
    install(tmp_path, "cc", replacing_madbench(built, script), "compute")
    report = run_madbench(tmp_path, built)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("compute", "at-compute")
    assert said in report.reason + report.failure.stderr_tail


def test_times_are_read_as_printed_and_the_slowest_task_counts() -> None:
    times = parse_times(TIMES, 2, 2 * 32768, "ce1")
    measured = {metric.name: metric.value for metric in phase_metrics(times[2:4])}
    assert measured == pytest.approx(
        {
            "madbench.w.seconds": 0.0047,
            "madbench.w.busy.seconds": 0.0002,
            "madbench.w.io.seconds": 0.0045,
            "madbench.w.wait.seconds": 0.0005,
            "madbench.w.bytes": 4 * 32768,
            "madbench.w.bytes_per_second": 4 * 32768 / 0.0045,
        }
    )
    overall = {metric.name: metric.value for metric in overall_metrics([times[:2], times[2:4], times[4:]])}
    assert overall == pytest.approx(
        {
            "madbench.bytes": 8 * 32768,
            "madbench.bytes_per_second": 8 * 32768 / (0.008 + 0.0045 + 0.002),
            "madbench.read.bytes_per_second": 4 * 32768 / (0.003 + 0.001),
            "madbench.write.bytes_per_second": 4 * 32768 / (0.007 + 0.002),
        }
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        TIMES + "x\n",
        TIMES[:-60],
        TIMES.replace("task 1", "task 2"),
        TIMES.replace("W task 0 read 3", "W task 0 read 4"),
        "\n".join(reversed(TIMES.splitlines())),
    ],
)
def test_times_that_are_not_of_all_phases_and_tasks_are_unreadable(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of madbench at ce1"):
        parse_times(text, 2, 2 * 32768, "ce1")
