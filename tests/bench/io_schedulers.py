"""The kernel's I/O schedulers on a loop device over emulated storage: does bfq limit streams? Needs root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from monitor.testbed.errors import MissingProgram
from monitor.testbed.storage import build, profiles
from monitor.testbed.storage.mount import mounted
from monitor.testbed.storage.profile import MIB
from tests.bench.base import Result, seconds

PROFILE = "xeon-eide"
READERS, READER_BYTES, REQUEST_BYTES = 4, 12 * MIB, 128 << 10
# What to write below /sys/block/DEVICE/queue, in this order.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "none": {"scheduler": "none"},
    "mq-deadline": {"scheduler": "mq-deadline"},
    "bfq as shipped": {"scheduler": "bfq"},
    "bfq, low_latency 0": {"scheduler": "bfq", "iosched/low_latency": "0"},
    "bfq, low_latency 0, strict_guarantees 1": {
        "scheduler": "bfq",
        "iosched/low_latency": "0",
        "iosched/strict_guarantees": "1",
    },
    "bfq, low_latency 0, slice_idle 0": {
        "scheduler": "bfq",
        "iosched/low_latency": "0",
        "iosched/slice_idle": "0",
    },
}


def measure() -> list[Result]:
    with (
        tempfile.TemporaryDirectory(prefix="gridcast-schedulers-") as scratch,
        contextlib.ExitStack() as stack,
    ):
        try:
            device = stack.enter_context(_loop_device(Path(scratch)))
        except (MissingProgram, _Unsuitable) as error:
            print(f"schedulers are not measured: {error}")
            return []
        took = {name: _read(device, settings) for name, settings in SETTINGS.items()}
    size = READERS * READER_BYTES / 1e6
    figures = {f"{name}, MB/s": size / time for name, time in took.items()}
    ratio = took["bfq, low_latency 0"] / took["none"]
    return [
        Result("4 readers with bfq, low_latency 0: time / without a scheduler", ratio, 0.8, "lower", figures)
    ]


class _Unsuitable(Exception):
    """This host has no loop devices, no bfq, or the user is not root."""


@contextlib.contextmanager
def _loop_device(scratch: Path) -> Iterator[Path]:
    losetup = shutil.which("losetup", path="/usr/sbin:/sbin:/usr/bin")
    if os.geteuid() != 0 or losetup is None:
        raise _Unsuitable("a loop device needs root and losetup (Debian: mount)")
    directory = scratch / "device"
    directory.mkdir()
    with mounted(build.emulator(scratch), directory, profiles.load(PROFILE)):
        image = directory / "image"
        with image.open("wb") as file:
            file.writelines(os.urandom(MIB) for _ in range(READERS * READER_BYTES // MIB))
        attach = [losetup, "--find", "--show", "--direct-io=on", str(image)]
        attached = subprocess.run(attach, capture_output=True, text=True, check=False)
        if attached.returncode:
            raise _Unsuitable(attached.stderr.strip())
        device = Path(attached.stdout.strip())
        try:
            if "bfq" not in (_queue(device) / "scheduler").read_text(encoding="ascii"):
                raise _Unsuitable("this kernel has no bfq")
            # bfq waits for no stream of a device that queues commands, unless the device is rotational.
            rotational = (_queue(device) / "rotational").read_text(encoding="ascii")
            (_queue(device) / "rotational").write_text("1", encoding="ascii")
            yield device
            (_queue(device) / "rotational").write_text(rotational, encoding="ascii")
        finally:
            (_queue(device) / "scheduler").write_text("none", encoding="ascii")
            subprocess.run([losetup, "--detach", str(device)], check=True)


def _queue(device: Path) -> Path:
    return Path("/sys/block", device.name, "queue")


def _read(device: Path, settings: Mapping[str, str]) -> float:
    for name, value in {"scheduler": "none", **settings}.items():
        (_queue(device) / name).write_text(value, encoding="ascii")
    blocks = READER_BYTES // REQUEST_BYTES
    commands = [
        [
            "dd",
            f"if={device}",
            "of=/dev/null",
            f"bs={REQUEST_BYTES}",
            f"count={blocks}",
            f"skip={number * blocks}",
        ]
        for number in range(READERS)
    ]

    def all_readers() -> None:
        argv = [[*command, "iflag=direct", "status=none"] for command in commands]
        running = [subprocess.Popen(each) for each in argv]
        if any(process.wait() for process in running):
            raise RuntimeError("dd failed")

    return seconds(all_readers)
