"""PreCo: its kernels against a reference implementation, metrics and failures of its runs."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from probes.base import ProbeFailed
from probes.preco import Correlations, TaskTiming, estimated_flops, parse_correlations, parse_tasks, slab_ends
from reporters.report import Report
from tests.by_night import by_night
from tests.probes import tomography
from tests.probes.kernels import build, copying_compiler, refusal, run
from tests.probes.runs import install, logged, metrics, run_locally, units

SIZE, PROJECTIONS, THICKNESS = 45, 41, 32
ROLES = ("source", "compute", "destination")
TASKS = """\
slices 0 16 read 0.000165 filter 0.001246 backproject 0.002610 write 0.000183 seconds 0.004812
slices 16 32 read 0.000171 filter 0.001301 backproject 0.002702 write 0.000190 seconds 0.005017
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the compiled kernels and ``series.mrc`` of the phantom."""
    directory = tmp_path_factory.mktemp("kernels")
    for kernel in ("phantom", "backproject"):
        build(directory, kernel)
    run(directory / "phantom", "project", directory / "series.mrc", SIZE, PROJECTIONS, 60)
    return directory


def reconstruct(built: Path, file: Path, first: int = 0, end: int = SIZE) -> Path:
    run(built / "backproject", built / "series.mrc", file, first, end, THICKNESS, 60)
    return file


def test_a_projection_is_the_integral_of_the_phantom_along_each_ray(built: Path) -> None:
    series = tomography.read_mrc(built / "series.mrc")
    along = np.linspace(-1.5, 1.5, 30_001)
    random = np.random.default_rng(1)
    for projection, row, column in random.integers(0, (PROJECTIONS, SIZE, SIZE), (40, 3)):
        tilt = tomography.tilts(PROJECTIONS)[projection]
        place, height = tomography.cell_centres(SIZE, SIZE)[[column, row]]
        x = place * np.cos(tilt) - along * np.sin(tilt)
        y = place * np.sin(tilt) + along * np.cos(tilt)
        integral = tomography.density(x, y, np.asarray(height)).sum() * (along[1] - along[0])
        assert series[projection, row, column] == pytest.approx(integral, abs=2e-3)


@pytest.mark.parametrize("thickness", [1, SIZE - 1, SIZE + 6])
def test_the_phantom_is_drawn_voxel_by_voxel(built: Path, tmp_path: Path, thickness: int) -> None:
    run(built / "phantom", "draw", tmp_path / "drawn", SIZE, thickness)
    drawn = tomography.read_mrc(tmp_path / "drawn")
    differing = np.abs(drawn - tomography.phantom(SIZE, thickness)) > 1e-6
    assert differing.mean() < 1e-4  # where a voxel's middle lies on a surface, rounding decides


def test_the_reconstruction_equals_the_reference(built: Path, tmp_path: Path) -> None:
    volume = tomography.read_mrc(reconstruct(built, tmp_path / "volume"))
    expected = tomography.reconstruction(tomography.read_mrc(built / "series.mrc"), THICKNESS)
    assert volume.shape == (SIZE, THICKNESS, SIZE)
    assert np.abs(volume - expected).max() < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("ends", [[SIZE], [1, 2, 33, SIZE], slab_ends(SIZE, SIZE), [0, 20, 20, SIZE]])
def test_concatenated_slabs_are_the_volume_for_any_division(
    built: Path, tmp_path: Path, ends: list[int]
) -> None:
    whole = reconstruct(built, tmp_path / "whole").read_bytes()
    slabs = [
        reconstruct(built, tmp_path / f"slab{first}-{end}", first, end).read_bytes()
        for first, end in zip([0, *ends[:-1]], ends, strict=True)
        if first < end
    ]
    assert b"".join(slabs) == whole


def test_the_correlations_equal_the_reference(built: Path, tmp_path: Path) -> None:
    file = reconstruct(built, tmp_path / "volume")
    message = parse_correlations(run(built / "phantom", "compare", file, 60), "here")
    volume, cylinder = tomography.read_mrc(file), tomography.common_cylinder(SIZE, THICKNESS)
    phantom = tomography.phantom(SIZE, THICKNESS)
    # One row more than the size, so that an even number of rows is cut off.
    square = tomography.phantom(SIZE, SIZE + 1)
    rows = slice((SIZE + 1 - THICKNESS) // 2, (SIZE + 1 + THICKNESS) // 2)
    padded = np.pad(square, ((0, 0), (0, 0), (0, 1)))
    fair = np.array([tomography.without_missing_wedge(drawn_slice)[rows, :SIZE] for drawn_slice in padded])
    assert message.plain == pytest.approx(
        tomography.correlation(volume[:, cylinder], phantom[:, cylinder]), abs=1e-4
    )
    assert message.without_wedge == pytest.approx(
        tomography.correlation(volume[:, cylinder], fair[:, cylinder]), abs=5e-3
    )


def test_voxels_outside_the_cylinder_are_not_compared(built: Path, tmp_path: Path) -> None:
    size, thickness = 9, 19
    drawn = tmp_path / "drawn"
    run(built / "phantom", "draw", drawn, size, thickness)
    data = bytearray(drawn.read_bytes())
    for row in (0, 4, 14, 18):  # the column on the axis, above and below the cylinder, in the first slice
        offset = 1024 + 4 * (row * size + size // 2)
        data[offset : offset + 4] = struct.pack("=f", 1e6)
    drawn.write_bytes(data)
    assert parse_correlations(run(built / "phantom", "compare", drawn, 60), "here").plain == 1.0


def test_the_phantom_correlates_fully_with_itself(built: Path, tmp_path: Path) -> None:
    run(built / "phantom", "draw", tmp_path / "drawn", SIZE, SIZE)
    within_tilts = parse_correlations(run(built / "phantom", "compare", tmp_path / "drawn", 60), "here")
    assert within_tilts.plain == 1.0
    all_angles = parse_correlations(run(built / "phantom", "compare", tmp_path / "drawn", 90), "here")
    assert all_angles.without_wedge == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(("size", "thickness"), [(32, 32), (33, 7), (64, 64), (100, 1), (127, 96)])
def test_the_minimum_number_of_projections_suffices(
    built: Path, tmp_path: Path, size: int, thickness: int
) -> None:
    series, volume = tmp_path / "series", tmp_path / "volume"
    run(built / "phantom", "project", series, size, 41, 60)
    run(built / "backproject", series, volume, 0, size, thickness, 60)
    assert parse_correlations(run(built / "phantom", "compare", volume, 60), "here").without_wedge >= 0.9


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:-1], r"has 333123 bytes, 45 x 45 x 41 values need 333124"),
        (lambda data: data + b"x", r"has 333125 bytes"),
        (lambda data: data[:1000], r"it ends too early"),
        (lambda data: b"", r"it ends too early"),
        (lambda data: data[:12] + data[15:11:-1] + data[16:], r"not an MRC file of 32-bit reals in the byte"),
        (lambda data: data[:208] + b"PAM " + data[212:], r"not an MRC file"),
        (lambda data: b"\xff" * 12 + data[12:], r"has an invalid dimension: -1"),
    ],
)  # fmt: skip
def test_a_damaged_series_is_refused(
    built: Path, tmp_path: Path, damage: Callable[[bytes], bytes], message: str
) -> None:
    (tmp_path / "damaged").write_bytes(damage((built / "series.mrc").read_bytes()))
    answer = refusal(built / "backproject", tmp_path / "damaged", tmp_path / "slab", 0, SIZE, SIZE, 60)
    assert re.search(message, answer), answer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, SIZE + 1, 8, 60), "END: 46 is not a number from 0 to 45"),
        ((7, 3, 8, 60), "END: 3 is not a number from 7 to 45"),
        ((-1, 3, 8, 60), "FIRST: -1"),
        (("0.5", 3, 8, 60), "FIRST: 0.5 is not a whole number"),
        ((0, 3, 0, 60), "THICKNESS: 0"),
        ((0, 3, 8, "nan"), "TILT_DEGREES: nan"),
        ((0, 3, 8), "usage: backproject"),
    ],
)
def test_invalid_arguments_are_refused(
    built: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    answer = refusal(built / "backproject", built / "series.mrc", tmp_path / "slab", *arguments)
    assert message in answer


@pytest.mark.parametrize(
    "command",
    [
        "phantom project /dev/full 32 2 60",
        "phantom draw /dev/full 32 2",
        "backproject series.mrc /dev/full 0 45 8 60",
        "backproject series.mrc /dev/full 20 45 8 60",
        "backproject series.mrc /dev/null 0 45 8 60 > /dev/full",
    ],
)
def test_a_full_disk_is_reported(built: Path, command: str) -> None:
    answer = refusal("sh", "-c", f'cd "$1" && exec ./{command}', "sh", built)
    assert "No space left on device" in answer


def test_a_volume_with_a_nan_is_refused(built: Path, tmp_path: Path) -> None:
    volume = tomography.phantom(8, 8)
    volume[3, 0, 5] = np.nan
    tomography.write_mrc(tmp_path / "volume", volume)
    assert "voxel 5 of slice 3 is not a finite number" in refusal(
        built / "phantom", "compare", tmp_path / "volume", 60
    )


def test_memory_does_not_grow_with_the_number_of_slices(built: Path, tmp_path: Path) -> None:
    tomography.write_mrc(tmp_path / "tall", np.zeros((2, 16_000, 32)))
    limited = ["sh", "-c", 'ulimit -v 8192 && exec "$@"', "sh"]
    run(*limited, built / "backproject", tmp_path / "tall", tmp_path / "slab", 0, 16_000, 8, 60)
    assert (tmp_path / "slab").stat().st_size == 1024 + 4 * 16_000 * 8 * 32 > 8192 * 1024


def run_preco(directory: Path, built: Path, **changes: object) -> Report:
    """Run a small PreCo with a compiler that copies, unless the test has installed another."""
    for role in ("source", "compute"):
        if not (directory / f"at-{role}" / "bin" / "cc").exists():
            install(directory, "cc", copying_compiler(built), role)
    return run_locally("preco", directory, {"size": 32, "projections": 41, **changes}, *ROLES)


def replacing_backproject(built: Path, script: str) -> str:
    """Return a compiler that installs *script* as the kernel; the real kernel is ``$real``."""
    (built / "instead").write_text(f"#!/bin/sh\nreal={built}/backproject\n{script}\n")
    (built / "instead").chmod(0o755)
    take = f'case $out in */backproject) cp {built}/instead "$out"; exit ;; esac'
    return copying_compiler(built, unless=take)


def test_a_run_measures_tasks_transfers_and_correlations(built: Path, tmp_path: Path) -> None:
    report = run_preco(tmp_path, built, tasks=3, thickness=20)
    assert report.outcome == "passed", report.reason
    values, unit = metrics(report), units(report)
    seconds = [values[f"preco.task.{task}.seconds"] for task in range(3)]
    assert values["compute.voxels_per_second"] == pytest.approx(32 * 32 * 20 / max(seconds))
    assert values["compute.flops_per_second"] == pytest.approx(estimated_flops(41, 32, 20) / max(seconds))
    assert values["preco.imbalance"] == pytest.approx(max(seconds) / (sum(seconds) / 3) - 1)
    assert values["preco.moved.bytes"] == 2 * 1024 + 4 * 32 * 32 * (41 + 20)
    assert 0.9 <= values["preco.correlation.plain"] <= values["preco.correlation"] < 1
    assert (unit["preco.imbalance"], unit["compute.flops_per_second"]) == ("ratio", "flops_per_second")
    assert {"transfer.seconds", "transfer.results.seconds", "queue.seconds"} <= set(values)


def test_a_traced_run_has_the_seconds_of_its_tasks_by_class(built: Path, tmp_path: Path) -> None:
    assert not [name for name in metrics(run_preco(tmp_path, built)) if name.startswith("io.")]
    parameters = {"size": 32, "projections": 41, "trace": True}
    report = run_locally("preco", tmp_path / "traced", parameters, *ROLES)
    assert report.outcome == "passed", report.reason
    values = metrics(report)
    slab_bytes = 4 * 32 * 32 * 32
    assert values["io.write.bytes"] >= slab_bytes  # and the times that the tasks print
    assert values["io.read.bytes"] >= 4 * 32 * 32 * 41
    assert values["io.seconds"] > 0
    assert values["io.think.seconds"] > 0


def test_the_number_of_tasks_is_limited_to_the_slices(built: Path, tmp_path: Path) -> None:
    report = run_preco(tmp_path, built, tasks=40)
    assert report.outcome == "passed", report.reason
    assert len([name for name in metrics(report) if name.startswith("preco.task.")]) == 32


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('case $2 in slab.1) kill -9 $$ ;; esac; exec $real "$@"',
         "task 1 of backproject failed with status 137"),
        by_night('$real "$@" > /dev/null; echo done',
                 "unreadable output of backproject at at-compute: 'done\\ndone\\n'"),
        by_night('case $2 in slab.1) exit ;; esac; exec $real "$@"',
                 "slab.1: No such file or directory"),
        by_night('$real "$@"; printf x >> $2',
                 "phantom: volume.mrc has 132098 bytes, 32 x 32 x 32 values need 132096"),
        ('$real "$@" && dd if=/dev/zero of=$2 bs=4096 seek=1 count=15 conv=notrunc status=none',
         "does not look like the phantom: correlation"),
    ],
)  # fmt: skip
def test_a_faulty_task_fails_the_run(built: Path, tmp_path: Path, script: str, message: str) -> None:
    install(tmp_path, "cc", replacing_backproject(built, script), "compute")
    report = run_preco(tmp_path, built)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert (report.failure.stage, report.failure.resource) == ("compute", "at-compute")
    assert message in report.reason + report.failure.stderr_tail


@pytest.mark.parametrize(
    ("role", "stage", "message"),
    [
        by_night("source", "compute", "the tilt series from at-source was damaged on its way to at-compute"),
        ("compute", "transfer_results", "the volume arrived damaged at at-destination"),
    ],
)
def test_a_file_damaged_during_the_transfer_fails_the_run(
    built: Path, tmp_path: Path, role: str, stage: str, message: str
) -> None:
    damage = 'printf x | dd of="$3" bs=1 seek=5000 conv=notrunc status=none'
    install(tmp_path, "cp", f'/bin/cp "$@" && case $1 in --) {damage} ;; esac', role)
    report = run_preco(tmp_path, built)
    assert report.outcome == "failed"
    assert report.failure is not None
    assert report.failure.stage == stage
    assert message in report.reason


@pytest.mark.nightly
def test_a_compiler_that_refuses_march_native_is_called_again_without(built: Path, tmp_path: Path) -> None:
    refuse = (
        'case $* in *-march=native*) echo "cc: error: bad value (native) for -march=" >&2; exit 1 ;; esac'
    )
    install(tmp_path, "cc", copying_compiler(built, unless=refuse), "compute")
    report = run_preco(tmp_path, built)
    assert report.outcome == "passed", report.reason
    assert [text for text in logged(report, "warning") if "retrying without -march=native" in text]


def test_a_broken_compiler_fails_the_run(built: Path, tmp_path: Path) -> None:
    install(tmp_path, "cc", 'echo "cc: internal compiler error: Killed (program cc1)" >&2; exit 4', "compute")
    report = run_preco(tmp_path, built)
    assert report.failure is not None
    assert (report.outcome, report.failure.stage) == ("failed", "build_executable")
    assert "cannot compile backproject.c at at-compute: cc: internal compiler error" in report.reason


def test_times_of_tasks_are_parsed() -> None:
    assert parse_tasks(TASKS, [16, 32], "ce1") == [TaskTiming(0, 16, 0.004812), TaskTiming(16, 32, 0.005017)]


@pytest.mark.parametrize(
    "text",
    ["", "nonsense\n", TASKS + "x\n", TASKS.splitlines()[0], TASKS.replace("16 32", "16 31"),
     TASKS.replace("0.004812", "0.000000"), "\n".join(reversed(TASKS.splitlines()))],
)  # fmt: skip
def test_output_without_all_slices_is_unreadable(text: str) -> None:
    with pytest.raises(ProbeFailed, match="unreadable output of backproject at ce1"):
        parse_tasks(text, [16, 32], "ce1")


def test_correlations_are_parsed() -> None:
    printed = "slices 512 compared 32 correlation 0.978385 plain 0.902491\n"
    assert parse_correlations(printed, "ce1") == Correlations(0.978385, 0.902491)
    for text in ("", printed.replace("0.978385", "nan"), printed + printed):
        with pytest.raises(ProbeFailed, match="unreadable output of phantom at ce1"):
            parse_correlations(text, "ce1")


def test_too_few_projections_for_the_pixels_are_refused(tmp_path: Path) -> None:
    report = run_locally("preco", tmp_path, {"size": 2048, "projections": 60}, *ROLES)
    assert "projections: 60 are too few for 2048 pixels, needs 61" in report.reason


def test_slabs_differ_by_at_most_one_slice() -> None:
    assert slab_ends(512, 2) == [256, 512]
    assert slab_ends(10, 3) == [3, 6, 10]
    assert slab_ends(3, 8) == [1, 2, 3]


def test_the_operations_are_counted_as_documented() -> None:
    # 4 per voxel and projection, and 41 x 32 rows of 64 places: 5 x 64 x 6 + 64 each.
    assert estimated_flops(41, 32, 20) == 4 * 41 * 32 * 32 * 20 + 41 * 32 * (5 * 64 * 6 + 64)
