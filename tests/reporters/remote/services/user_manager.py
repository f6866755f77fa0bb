"""A systemd user manager of its own, in namespaces of mounts, processes and control groups."""

from __future__ import annotations

import contextlib
import getpass
import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reporters.cgroup import ProcessScope, own_group
from tests.reporters.needs import needs
from tests.waiting import eventually

_SYSTEMD = Path("/usr/lib/systemd/systemd")
# A user manager expects that systemd has booted the host, and a control group at the root of its namespace.
# Whatever goes wrong, the crontabs of the host stay as they are.
_INSIDE = """
for directory in /run /var/lib/systemd /var/spool; do mount -t tmpfs none $directory || exit; done
mkdir -p /run/systemd/system /var/lib/systemd/linger && : > /var/lib/systemd/linger/{user} || exit
mkdir -p -m 700 /run/user/{uid} || exit
umount --recursive /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup || exit
{systemd} --user
"""
_NAMESPACES = ["--mount", "--cgroup", "--pid"]


@dataclass(frozen=True)
class UserManager:
    """A running manager; *pid* is a process in its namespaces, *home* the home directory of its user."""

    pid: int
    home: Path

    def call(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a program as after a login by SSH: the session does not name the manager's directory."""
        environment = ["env", "-i", f"HOME={self.home}", f"PATH={os.defpath}"]
        return subprocess.run(
            ["nsenter", "--target", str(self.pid), *_NAMESPACES, *environment, *argv],
            capture_output=True,
            text=True,
            check=False,
        )

    def systemctl(self, *argv: str) -> str:
        """Return what systemctl prints, without the end of the line."""
        directory = f"XDG_RUNTIME_DIR=/run/user/{os.geteuid()}"
        return self.call("env", directory, "systemctl", "--user", *argv).stdout.strip()


@contextlib.contextmanager
def user_manager(home: Path) -> Iterator[UserManager]:
    """Run a manager until the context ends, as from boot to shutdown; skip the test where none can run."""
    needs("unshare", "nsenter")
    own = own_group()
    if os.geteuid() != 0 or own is None or not _SYSTEMD.exists():
        pytest.skip("a systemd user manager of its own needs root, cgroup version 2 and systemd")
    group = own / f"test-{uuid.uuid4().hex}"
    group.mkdir()
    try:
        with _started(home, group) as process:
            manager = UserManager(_first_child(process.pid), home)
            assert eventually(lambda: manager.systemctl("show", "--property=Version")), "no manager"
            yield manager
            manager.systemctl("exit")
            process.wait(60)
    finally:
        scope = ProcessScope(group)
        scope.kill()
        scope.remove()


@contextlib.contextmanager
def _started(home: Path, group: Path) -> Iterator[subprocess.Popen[bytes]]:
    inside = _INSIDE.format(uid=os.geteuid(), user=getpass.getuser(), systemd=_SYSTEMD)
    environment = {"HOME": str(home), "PATH": os.defpath, "XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}"}
    unshare = ["unshare", *_NAMESPACES, "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside]
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    with subprocess.Popen(
        ["sh", "-c", enter, "sh", *unshare],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _first_child(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    assert eventually(lambda: children.read_text().split()), "unshare has not started its program"
    return int(children.read_text().split()[0])
