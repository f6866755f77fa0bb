"""Mount an emulated storage device, and unmount it whatever happens."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from monitor.testbed.errors import NotServing, TestbedError
from monitor.testbed.storage.profile import StorageProfile

_END_SECONDS = 20.0


@contextlib.contextmanager
def mounted(program: Path, directory: Path, profile: StorageProfile) -> Iterator[subprocess.Popen[str]]:
    """Mount a device with *profile* at the empty *directory*; yield its process; unmount it at the end.

    The emulator also ends when this process is killed. What a killed emulator leaves is unmounted first.

    Raises:
        TestbedError: *directory* is no empty directory.
        NotServing: the kernel or the emulator refuses the mount; the message has its text.
    """
    _check(directory)
    arguments = [f"{name}={value!r}" for name, value in asdict(profile).items()]
    with subprocess.Popen(
        [str(program), str(directory), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,  # Ctrl-C reaches this process, which unmounts
    ) as process:
        first_line = process.stdout.readline() if process.stdout else ""
        if first_line != "mounted\n":
            _, error = process.communicate(timeout=_END_SECONDS)
            reason = error.strip() or f"exit status {process.returncode}"
            if not os.access("/dev/fuse", os.R_OK | os.W_OK):
                reason += " (as root: modprobe fuse, chmod 666 /dev/fuse)"
            raise NotServing(f"cannot mount emulated storage at {directory}: {reason}")
        try:
            yield process
        finally:
            _end(process, directory)


def _check(directory: Path) -> None:
    if _is_dead(directory):
        _detach(directory)
    if not directory.is_dir():
        raise TestbedError(f"cannot mount emulated storage at {directory}: it is not a directory")
    if next(directory.iterdir(), None) is not None:
        raise TestbedError(
            f"cannot mount emulated storage at {directory}: it is not empty, and its files would be hidden"
        )


def _end(process: subprocess.Popen[str], directory: Path) -> None:
    """End the emulator, which unmounts. A file that is still open keeps no mount: it is detached (lazily)."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if _is_dead(directory) or os.path.ismount(directory):
        _detach(directory)


def _is_dead(directory: Path) -> bool:
    """Return whether a killed emulator has left its mount."""
    try:
        directory.stat()
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def _detach(directory: Path) -> None:
    subprocess.run([shutil.which("fusermount3") or "fusermount3", "-uz", str(directory)], check=False)
