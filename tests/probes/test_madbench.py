"""MADbench: output and checks of its kernel, metrics and failures of its runs."""

from __future__ import annotations

import contextlib
import fcntl
import re
import resource
import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from probes.base import ProbeFailed
from probes.madbench import overall_metrics, parse_times, phase_metrics
from reporters.report import Report
from tests.by_night import by_night
from tests.probes.kernels import build, copying_compiler, refusal, run
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
    """Return a directory with the compiled kernel."""
    directory = tmp_path_factory.mktemp("kernels")
    build(directory, "madbench")
    return directory


def command(built: Path, phase: str, file: object, task: int = 0, tasks: int = 1) -> list[object]:
    locks = [f"{built}/readers", f"{built}/writers"]
    return [built / "madbench", phase, file, "own", NO_PIX, NO_BIN, task, tasks, 1.0, *locks]


def written_matrix(matrix: int) -> npt.NDArray[np.float64]:
    """Return the matrix that S writes: the upper 53 bits of splitmix64 of each index, as fractions."""
    with np.errstate(over="ignore"):
        z = np.arange(matrix * NO_PIX**2 + 1, (matrix + 1) * NO_PIX**2 + 1, dtype=np.uint64)
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    upper = (z ^ (z >> np.uint64(31))) >> np.uint64(11)
    return np.ldexp(upper.astype(np.float64), -53).reshape(NO_PIX, NO_PIX)


def test_the_tasks_write_their_rows_of_every_matrix_and_then_replace_them(
    built: Path, tmp_path: Path
) -> None:
    expected = np.array([written_matrix(matrix) for matrix in range(NO_BIN)])
    for phase, values in (("S", expected), ("W", 0.5 - expected), ("C", 0.5 - expected)):
        parts = []
        for task, file in enumerate(tmp_path / f"matrices.{task}" for task in range(4)):
            run(*command(built, phase, file, task, 4))
            parts.append(np.fromfile(file).reshape(NO_BIN, -1, NO_PIX))
        assert np.array_equal(np.concatenate(parts, axis=1), values)


MPI = pytest.mark.skipif(
    shutil.which("mpicc") is None or shutil.which("mpirun") is None, reason="no MPI (Debian: mpich)"
)


@pytest.mark.parametrize(
    ("io_method", "sharing"),
    [
        ("posix", "own"),
        by_night("posix", "shared"),
        pytest.param("mpiio", "own", marks=[MPI, pytest.mark.nightly]),
        pytest.param("mpiio", "shared", marks=MPI),
    ],
)
def test_tasks_use_posix_calls_or_mpi_io_with_own_files_or_one(
    tmp_path: Path, io_method: str, sharing: str
) -> None:
    parameters = {"no_pix": 65, "no_bin": 2, "tasks": 3, "io_method": io_method, "sharing": sharing}
    report = run_locally("madbench", tmp_path, {**parameters, "trace": True}, "compute")
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    matrices_bytes = 8 * 65 * 65 * 2
    assert values["madbench.bytes"] == 4 * matrices_bytes
    assert values["io.read.bytes"] == 2 * matrices_bytes
    assert values["io.write.bytes"] >= 2 * matrices_bytes  # and the times that it prints
    assert values["io.seconds"] == pytest.approx(
        sum(values[f"io.{name}.seconds"] for name in ("read", "write", "sync", "metadata")), rel=1e-6
    )
    assert values["io.calls"] >= 3 * 2 * 4


def test_a_shared_file_has_all_matrices(built: Path, tmp_path: Path) -> None:
    expected = np.array([written_matrix(matrix) for matrix in range(NO_BIN)])
    file = tmp_path / "matrices"
    file.touch()
    for phase, values in (("S", expected), ("W", 0.5 - expected), ("C", 0.5 - expected)):
        for task in range(4):
            words = command(built, phase, file, task, 4)
            words[3] = "shared"
            run(*words)
        assert np.array_equal(np.fromfile(file).reshape(expected.shape), values)


def test_the_first_edition_reads_twice_what_it_wrote(built: Path, tmp_path: Path) -> None:
    report = run_madbench(tmp_path, built, edition=1)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    assert [values[f"madbench.{phase}.bytes"] for phase in ("s", "i", "r")] == [MATRICES_BYTES] * 3
    assert "madbench.w.bytes" not in values


def test_a_run_without_a_trace_has_no_seconds_by_class(built: Path, tmp_path: Path) -> None:
    assert not [name for name in metrics(run_madbench(tmp_path, built)) if name.startswith("io.")]


@pytest.mark.parametrize(("phases", "phase"), [("S", "W"), ("SW", "C")])
def test_a_flipped_bit_is_detected_and_located(built: Path, tmp_path: Path, phases: str, phase: str) -> None:
    for before in phases:
        run(*command(built, before, tmp_path / "matrices"))
    data = bytearray((tmp_path / "matrices").read_bytes())
    data[8 * (2 * NO_PIX**2 + 7 * NO_PIX + 5)] ^= 1
    (tmp_path / "matrices").write_bytes(data)
    message = refusal(*command(built, phase, tmp_path / "matrices"))
    assert "row 7, column 5 of matrix 2 was written as" in message


def test_swapped_matrices_are_detected(built: Path, tmp_path: Path) -> None:
    run(*command(built, "S", tmp_path / "matrices"))
    data, size = (tmp_path / "matrices").read_bytes(), 8 * NO_PIX**2
    (tmp_path / "matrices").write_bytes(data[size : 2 * size] + data[:size] + data[2 * size :])
    assert "row 0, column 0 of matrix 0" in refusal(*command(built, "W", tmp_path / "matrices"))


def test_a_truncated_file_is_detected(built: Path, tmp_path: Path) -> None:
    run(*command(built, "S", tmp_path / "matrices"))
    with (tmp_path / "matrices").open("r+b") as file:
        file.truncate(8 * NO_BIN * NO_PIX**2 - 1)
    assert "it ends too early" in refusal(*command(built, "W", tmp_path / "matrices"))


def test_a_full_disk_is_reported(built: Path) -> None:
    assert "cannot write /dev/full: No space left on device" in refusal(*command(built, "S", "/dev/full"))


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (1, "D", "usage: madbench"),
        (4, 0, "NO_PIX: 0 is not a number from 1"),
        (5, "x", "NO_BIN: x"),
        (6, 1, "TASK: 1 is not a number from 0 to 0"),
        (7, 20, "TASKS: 20 is not a number from 1 to 19"),
        (8, 2.5, "BUSY_EXPONENT: 2.5"),
        (9, "/no/such", "cannot open /no/such: No such file or directory"),
    ],
)
def test_invalid_arguments_are_refused(
    built: Path, tmp_path: Path, position: int, value: object, message: str
) -> None:
    words = command(built, "S", tmp_path / "matrices")
    words[position] = value
    assert message in refusal(*words)


def test_of_tasks_with_one_lock_only_one_writes_at_a_time(built: Path, tmp_path: Path) -> None:
    argv = [str(word) for word in command(built, "S", tmp_path / "matrices")]
    with contextlib.ExitStack() as stack:
        lock = stack.enter_context((built / "writers").open("w"))
        fcntl.lockf(lock, fcntl.LOCK_EX)
        task = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        stack.callback(task.kill)
        blocked = re.compile(rf"-> POSIX +ADVISORY +WRITE +{task.pid} ")
        assert eventually(lambda: blocked.search(Path("/proc/locks").read_text()) is not None)
        assert (tmp_path / "matrices").stat().st_size == 0
        fcntl.lockf(lock, fcntl.LOCK_UN)
        output, _ = task.communicate(timeout=60)
    assert task.returncode == 0
    wait = re.search(r"wait (\S+) ", output)
    assert wait is not None
    assert float(wait[1]) > 0


def test_only_one_matrix_at_a_time_is_in_memory(built: Path, tmp_path: Path) -> None:
    words = command(built, "S", tmp_path / "matrices")
    words[4], words[5] = 256, 24  # of 512 kB each
    run("sh", "-c", 'ulimit -v 8192 && exec "$@"', "sh", *words)
    assert (tmp_path / "matrices").stat().st_size > 8192 * 1024


def test_busy_work_grows_with_its_exponent(built: Path, tmp_path: Path) -> None:
    def cpu_seconds(exponent: float) -> float:
        words = command(built, "S", tmp_path / "matrices")
        words[4], words[5], words[8] = 128, 1, exponent
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run(*words)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    # 2.7e8 operations against 1.6e4: CPU time does not depend on the load of the machine.
    assert cpu_seconds(2.0) > 3 * min(cpu_seconds(1.0) for _ in range(5))


def run_madbench(directory: Path, built: Path, **changes: object) -> Report:
    """Run a small MADbench with a compiler that copies, unless the test has installed another."""
    if not (directory / "at-compute" / "bin" / "cc").exists():
        install(directory, "cc", copying_compiler(built), "compute")
    return run_locally("madbench", directory, {"no_pix": 64, "no_bin": 2, **changes}, "compute")


def replacing_madbench(built: Path, script: str) -> str:
    """Return a compiler that installs *script* as the kernel; the real kernel is ``$real``."""
    (built / "instead").write_text(f"#!/bin/sh\nreal={built}/madbench\n{script}\n")
    (built / "instead").chmod(0o755)
    return copying_compiler(built, unless=f'cp {built}/instead "$out"; exit')


def test_a_run_measures_every_phase_and_their_totals(built: Path, tmp_path: Path) -> None:
    report = run_madbench(tmp_path, built, tasks=3)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    for phase, times in (("s", 1), ("w", 2), ("c", 1)):
        assert values[f"madbench.{phase}.bytes"] == times * MATRICES_BYTES
        assert values[f"madbench.{phase}.seconds"] >= values[f"madbench.{phase}.busy.seconds"] > 0
        assert values[f"madbench.{phase}.bytes_per_second"] == pytest.approx(
            times * MATRICES_BYTES / values[f"madbench.{phase}.io.seconds"]
        )
    assert values["madbench.bytes"] == 4 * MATRICES_BYTES
    assert values["madbench.bytes_per_second"] > 0


def test_the_number_of_tasks_is_limited_to_the_rows(built: Path, tmp_path: Path) -> None:
    report = run_madbench(tmp_path, built, no_pix=3, no_bin=1, tasks=20)
    assert report.outcome == "passed", report.reason
    assert metrics(report)["madbench.bytes"] == 4 * 8 * 9


def test_neighbouring_tasks_share_locks(built: Path, tmp_path: Path) -> None:
    log_arguments = f'echo "$1 $6 $9 ${{10}}" >> {tmp_path}/arguments; exec $real "$@"'
    install(tmp_path, "cc", replacing_madbench(built, log_arguments), "compute")
    report = run_madbench(tmp_path, built, tasks=4, rmod=2, wmod=3)
    assert report.outcome == "passed", report.reason
    lines = sorted(line for line in (tmp_path / "arguments").read_text().splitlines() if line.startswith("W"))
    assert lines == [
        "W 0 readers.0 writers.0",
        "W 1 readers.0 writers.0",
        "W 2 readers.1 writers.0",
        "W 3 readers.1 writers.1",
    ]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('case $1$6 in W1) kill -9 $$ ;; esac; exec $real "$@"', "task 1 of phase W failed with status 137"),
        ('$real "$@" > /dev/null; echo done', "unreadable output of madbench at at-compute: 'done\\ndone"),
        ('case $1 in C) : > $2 ;; esac; exec $real "$@"', "cannot read matrices.0: it ends too early"),
        ('case $1 in C) printf x | dd of=$2 bs=1 seek=80 conv=notrunc status=none ;; esac; exec $real "$@"',
         "row 0, column 10 of matrix 0 was written as"),
    ],
)  # fmt: skip
def test_a_faulty_task_fails_the_run(built: Path, tmp_path: Path, script: str, message: str) -> None:
    install(tmp_path, "cc", replacing_madbench(built, script), "compute")
    report = run_madbench(tmp_path, built)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("compute", "at-compute")
    assert message in report.reason + report.failure.stderr_tail


def test_times_are_parsed_and_the_slowest_task_determines_metrics() -> None:
    times = parse_times(TIMES, 2, 2 * 32768, "ce1")
    w_metrics = {metric.name: metric.value for metric in phase_metrics(times[2:4])}
    assert w_metrics == pytest.approx(
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
def test_output_without_all_phases_and_tasks_is_unreadable(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of madbench at ce1"):
        parse_times(text, 2, 2 * 32768, "ce1")
