"""Storage areas that the kernel makes: loop, btrfs RAID 0, zram, tmpfs, and a loop device with a limit.

They need root. Each one skips what this host lacks, by name, and is removed also after a failure.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from monitor.testbed.middleware.programs import locate
from monitor.testbed.storage.profile import MIB
from tests.reporters.needs import needs
from tests.waiting import eventually

BYTES = 160 * MIB  # btrfs needs 109 MiB a device
ZRAM_BYTES = BYTES + 4096 * (os.getpid() % 4096)  # tells it from those of other processes
LIMIT_BYTES_PER_SECOND = 4 * MIB
CGROUP_NAME = "gridcast-test"
V1, V2 = Path("/sys/fs/cgroup/blkio"), (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
ZRAM = Path("/sys/class/zram-control")


@dataclass(frozen=True)
class KernelArea:
    """A mounted file system. Commands that begin with *prefix* have its limit."""

    directory: Path
    prefix: Sequence[str] = ()


@contextlib.contextmanager
def on_loop(scratch: Path) -> Iterator[KernelArea]:
    needs("losetup", "mkfs.ext4")
    with _loop_device(scratch / "image") as device, _ext4(device, scratch / "area") as directory:
        yield KernelArea(directory)


@contextlib.contextmanager
def on_btrfs(scratch: Path) -> Iterator[KernelArea]:
    needs("losetup", "mkfs.btrfs")
    _needs_file_system("btrfs")
    with _loop_device(scratch / "image.0") as first, _loop_device(scratch / "image.1") as second:
        _run(locate("mkfs.btrfs"), "-q", "-d", "raid0", "-m", "raid0", first, second)
        options = ("-t", "btrfs", "-o", f"device={first},device={second}")
        with _mounted(first, scratch / "area", *options) as directory:
            yield KernelArea(directory)


@contextlib.contextmanager
def on_zram(scratch: Path) -> Iterator[KernelArea]:
    needs("mkfs.ext4")
    _needs_root()
    if not ZRAM.is_dir():
        pytest.skip("no zram: the kernel's module zram is not loaded (modprobe zram)")
    number = (ZRAM / "hot_add").read_text(encoding="ascii").strip()
    try:
        Path(f"/sys/block/zram{number}/disksize").write_text(str(ZRAM_BYTES), encoding="ascii")
        with _ext4(f"/dev/zram{number}", scratch / "area") as directory:
            yield KernelArea(directory)
    finally:
        # busy as long as udev looks at it
        assert eventually(lambda: _is_removed(number)), f"zram{number} stays"


@contextlib.contextmanager
def on_tmpfs(scratch: Path) -> Iterator[KernelArea]:
    _needs_root()
    with _mounted("tmpfs", scratch / "area", "-t", "tmpfs", "-o", f"size={BYTES}") as directory:
        try:
            os.close(os.open(directory / "direct", os.O_CREAT | os.O_WRONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("tmpfs has no direct I/O before Linux 6.6")
        (directory / "direct").unlink()
        yield KernelArea(directory)


@contextlib.contextmanager
def on_limited_loop(scratch: Path) -> Iterator[KernelArea]:
    needs("losetup", "mkfs.ext4")
    with (
        _loop_device(scratch / "image") as device,
        _ext4(device, scratch / "area") as directory,
        _cgroup(f"{CGROUP_NAME}-{os.getpid()}", device) as cgroup,
    ):
        join = 'echo $$ > "$0" && exec "$@"'
        yield KernelArea(directory, ("sh", "-c", join, str(cgroup / "cgroup.procs")))


AREAS: dict[str, Callable[[Path], AbstractContextManager[KernelArea]]] = {
    "loop": on_loop,
    "btrfs": on_btrfs,
    "zram": on_zram,
    "tmpfs": on_tmpfs,
    "limited loop": on_limited_loop,
}


def remains(scratch: Path) -> list[str]:
    """Return the mounts, loop and zram devices and cgroups of areas below *scratch* that are there."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    images = Path("/sys/block").glob("loop*/loop/backing_file")
    zrams = Path("/sys/block").glob("zram*/disksize")
    cgroups = (root / f"{CGROUP_NAME}-{os.getpid()}" for root in (V1, *V2))
    return [
        *(mount for mount in mounts if str(scratch) in mount),
        *(str(image) for image in images if str(scratch) in _text(image)),
        *(str(zram) for zram in zrams if _text(zram) == str(ZRAM_BYTES)),
        *(str(cgroup) for cgroup in cgroups if cgroup.exists()),
    ]


def _text(file: Path) -> str:
    """Return the text of *file*; empty if its device is gone meanwhile."""
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8").strip()
    return ""


@contextlib.contextmanager
def _loop_device(image: Path) -> Iterator[str]:
    _needs_root()
    with image.open("wb") as file:
        file.truncate(BYTES)
    losetup = locate("losetup")
    attach = [losetup, "--find", "--show", str(image)]
    attached = subprocess.run(attach, capture_output=True, text=True, check=False)
    if attached.returncode:
        pytest.skip(f"no loop device: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    try:
        yield device
    finally:
        _run(losetup, "--detach", device)


@contextlib.contextmanager
def _ext4(device: str, directory: Path) -> Iterator[Path]:
    _run(locate("mkfs.ext4"), "-q", device)
    with _mounted(device, directory, "-t", "ext4") as mounted:
        yield mounted


@contextlib.contextmanager
def _mounted(device: str, directory: Path, *options: str) -> Iterator[Path]:
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", *options, device, str(directory)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no mount: {mounted.stderr.strip()}")
    try:
        directory.chmod(0o700)
        yield directory
    finally:
        _run("umount", str(directory))


@contextlib.contextmanager
def _cgroup(name: str, device: str) -> Iterator[Path]:
    """A control group whose reads of *device* are limited, by blkio.throttle (v1) or io.max (v2)."""
    device_number = Path(device).stat().st_rdev
    number = f"{os.major(device_number)}:{os.minor(device_number)}"
    root, enable, file, limit = _controller()
    with contextlib.ExitStack() as stack:
        if enable:
            enable.write_text("+io", encoding="ascii")
            stack.callback(enable.write_text, "-io", encoding="ascii")
        cgroup = root / name
        cgroup.mkdir()
        stack.callback(cgroup.rmdir)
        (cgroup / file).write_text(f"{number} {limit}{LIMIT_BYTES_PER_SECOND}", encoding="ascii")
        yield cgroup


def _controller() -> tuple[Path, Path | None, str, str]:
    """Return where groups are made, what must be enabled there, the file of limits, and a key in it."""
    if (V1 / "blkio.throttle.read_bps_device").exists():
        return V1, None, "blkio.throttle.read_bps_device", ""
    for root in V2:
        controllers = root / "cgroup.controllers"
        if controllers.exists() and "io" in controllers.read_text(encoding="ascii").split():
            enable = root / "cgroup.subtree_control"
            is_enabled = "io" in enable.read_text(encoding="ascii").split()
            return root, None if is_enabled else enable, "io.max", "rbps="
    pytest.skip("no limit: the kernel has neither blkio.throttle (cgroup v1) nor io.max (v2)")


def _is_removed(number: str) -> bool:
    with contextlib.suppress(OSError):
        (ZRAM / "hot_remove").write_text(number, encoding="ascii")
    return not Path(f"/sys/block/zram{number}").exists()


def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("not root: devices and mounts need it")


def _needs_file_system(name: str) -> None:
    if name not in Path("/proc/filesystems").read_text(encoding="ascii").split():
        pytest.skip(f"no {name}: the kernel's module {name} is not loaded (modprobe {name})")


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
