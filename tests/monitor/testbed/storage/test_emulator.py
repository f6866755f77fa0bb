from __future__ import annotations

import errno
import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.testbed.errors import MissingProgram, NotServing, TestbedError
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import KIB, MIB, StorageProfile
from tests.reporters.needs import needs

FAST = replace(profiles.load("ram"), capacity_bytes=4 * MIB, allocation_bytes=4 * KIB)


@pytest.fixture
def device(emulator: Path, tmp_path: Path) -> Iterator[Path]:
    """An empty device of 4 MiB, as fast as memory."""
    tmp_path.joinpath("device").mkdir()
    with mounted(emulator, tmp_path / "device", FAST):
        yield tmp_path / "device"


def test_a_tree_of_files_is_read_as_it_was_written(device: Path) -> None:
    source = Path(__file__).parents[3] / "monitor" / "testbed"
    shutil.copytree(source, device / "copy", ignore=shutil.ignore_patterns("__pycache__"))
    compared = subprocess.run(
        ["diff", "-r", "-x", "__pycache__", str(source), str(device / "copy")],
        capture_output=True,
        check=False,
    )
    assert (compared.returncode, compared.stdout) == (0, b"")
    shutil.rmtree(device / "copy")
    assert list(device.iterdir()) == []


def test_parts_of_a_file_are_overwritten_left_out_and_cut_off(device: Path) -> None:
    file = device / "file"
    with file.open("wb") as stream:
        stream.write(b"a" * 10)
        stream.seek(100 * KIB)
        stream.write(b"end")
    with file.open("r+b") as stream:
        stream.seek(5)
        stream.write(b"bb")
    assert file.read_bytes() == b"aaaaabbaaa" + bytes(100 * KIB - 10) + b"end"
    os.truncate(file, 6)
    os.truncate(file, 8)
    assert file.read_bytes() == b"aaaaab\0\0"


def test_a_file_is_renamed_over_another_and_read_after_its_name_is_gone(device: Path) -> None:
    old, new = device / "old", device / "new"
    old.write_text("old", encoding="ascii")
    new.write_text("new", encoding="ascii")
    with new.open("rb") as stream:
        old.rename(new)
        assert stream.read() == b"new"
    assert new.read_text(encoding="ascii") == "old"
    assert not old.exists()
    (device / "directory").mkdir()
    (device / "directory" / "inside").touch()
    with pytest.raises(OSError, match="not empty"):
        (device / "directory").rmdir()


def test_a_full_device_refuses_writes_and_has_room_again_after_a_removal(device: Path) -> None:
    (device / "kept").write_bytes(bytes(MIB))
    with pytest.raises(OSError, match="No space left") as refused:
        (device / "large").write_bytes(bytes(4 * MIB))
    assert refused.value.errno == errno.ENOSPC
    assert shutil.disk_usage(device).free == 0
    (device / "large").unlink()
    (device / "small").write_bytes(b"x" * MIB)
    assert (device / "kept").read_bytes() == bytes(MIB)


def test_the_end_of_its_process_unmounts_it(emulator: Path, tmp_path: Path) -> None:
    with mounted(emulator, tmp_path, FAST):
        (tmp_path / "file").touch()
        assert os.path.ismount(tmp_path)
    assert not os.path.ismount(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_emulator_leaves_is_unmounted_by_the_next(emulator: Path, tmp_path: Path) -> None:
    with mounted(emulator, tmp_path, FAST) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with mounted(emulator, tmp_path, FAST):
            (tmp_path / "file").write_text("again", encoding="ascii")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("fusermount3", r"fusermount3 is not installed \(Debian: fuse3\)"),
        ("pkg-config", r"libfuse3 is not installed \(Debian: libfuse3-dev, pkg-config\)"),
        ("cc", r"there is no C compiler, cc \(Debian: gcc, libc6-dev\)"),
    ],
)
def test_what_is_missing_to_mount_is_named_with_its_package(
    missing: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("fusermount3", "pkg-config", "cc")
    for program in {"fusermount3", "pkg-config", "cc"} - {missing}:
        (tmp_path / program).symlink_to(shutil.which(program) or "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingProgram, match=message):
        build.emulator(tmp_path / "cache")


def test_a_directory_with_files_is_not_hidden(emulator: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(TestbedError, match="not empty, and its files would be hidden"),
        mounted(emulator, tmp_path, FAST),
    ):
        pass
    with pytest.raises(TestbedError, match="not a directory"), mounted(emulator, tmp_path / "none", FAST):
        pass


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"spindles": 0}, "spindles, parity"),
        ({"bytes_per_second": 0.0}, "bytes_per_second: expected more than 0"),
    ],
)
def test_impossible_parameters_are_refused_with_their_name(
    change: dict[str, float], complaint: str, emulator: Path, tmp_path: Path
) -> None:
    impossible = StorageProfile(**{"spindles": 1, **change})  # type: ignore[arg-type]
    with pytest.raises(NotServing, match=complaint), mounted(emulator, tmp_path, impossible):
        pass


def test_a_read_takes_at_least_as_long_as_the_device(emulator: Path, tmp_path: Path) -> None:
    with mounted(emulator, tmp_path, replace(FAST, read_latency_seconds=0.05)):
        (tmp_path / "file").write_bytes(bytes(4 * KIB))
        descriptor = os.open(tmp_path / "file", os.O_RDONLY | os.O_DIRECT)
        try:
            began = time.monotonic()
            os.preadv(descriptor, [mmap.mmap(-1, 4 * KIB)], 0)
            assert time.monotonic() - began >= 0.05
        finally:
            os.close(descriptor)
