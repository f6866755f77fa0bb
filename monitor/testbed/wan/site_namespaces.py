"""The namespaces of a site (network, process, mount, UTS), which exist while its first process runs.

Nothing is written below /etc or /run: the namespaces are unnamed and end with the first process. A site's own
files (its hosts, its accounts) are bind-mounted over the host's, in the site's mount namespace only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import NotServing
from monitor.testbed.middleware.programs import locate
from reporters import process

_UP_SECONDS = 60.0
# The first process of a process namespace: a shell, which reaps orphans. It reads its pid on the host from
# the host's /proc, which is still mounted then.
_FIRST = """\
set -e
read -r pid rest </proc/self/stat
hostname "$1"; shift
mount -t proc proc /proc
while [ $# -gt 1 ]; do mount --bind "$1" "$2"; shift 2; done
ip link set lo up
echo "$pid"
sleep infinity
exit
"""


@dataclass(frozen=True)
class Namespaces:
    """The namespaces of one site. *pid* is the host's pid for the first process in these namespaces."""

    name: str
    pid: int
    running: process.Running

    @property
    def prefix(self) -> tuple[str, ...]:
        """Return the words to put before a command so that it runs in the namespaces."""
        kinds = ("--net", "--uts", "--mount", "--pid")
        return (locate("nsenter"), f"--target={self.pid}", *kinds, "--")


@contextlib.contextmanager
def site_namespaces(
    name: str, *, mounts: Mapping[Path, str], environment: Mapping[str, str]
) -> Iterator[Namespaces]:
    """Create namespaces with the host name *name*; their processes are killed when the context ends.

    *mounts* maps each file of the site to the path of the host's file that it covers.

    Raises:
        NotServing, MissingProgram: the namespaces cannot be created, or a program is not installed.
    """
    unshare = [locate("unshare"), "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--"]
    covered = [word for own, covered_file in mounts.items() for word in (str(own), covered_file)]
    argv = [*unshare, "sh", "-c", _FIRST, "site", name, *covered]
    with process.start(argv, env=environment) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _UP_SECONDS):
            raise NotServing(f"cannot create namespaces for {name}: {_failure(running)}")
        yield Namespaces(name, int(running.output), running)


def _failure(running: process.Running) -> str:
    done = running.poll()
    return (done.stderr.strip() or f"status {done.returncode}") if done else f"not up after {_UP_SECONDS:g} s"


def write_covers(directory: Path, hosts: Mapping[str, str], home: Path) -> dict[Path, str]:
    """Write a site's hosts (name -> address) and accounts; return the host's file that each file covers.

    Root's home is *home*, and root may log in with a key but not with a password.
    """
    files = {
        directory / "hosts": ("/etc/hosts", _hosts(hosts)),
        directory / "passwd": ("/etc/passwd", _passwd(Path("/etc/passwd").read_text("utf-8"), home)),
        directory / "shadow": ("/etc/shadow", "root:*:20000:0:99999:7:::\n"),
    }
    for file, (_, text) in files.items():
        file.write_text(text, encoding="utf-8")
    (directory / "shadow").chmod(0o600)
    return {file: covered for file, (covered, _) in files.items()}


def _hosts(hosts: Mapping[str, str]) -> str:
    lines: Sequence[str] = [f"{address} {name}\n" for name, address in hosts.items()]
    return "127.0.0.1 localhost\n" + "".join(lines)


def _passwd(text: str, home: Path) -> str:
    """Return the accounts of *text* (an /etc/passwd) with *home* as root's home."""
    rows = [line.split(":") for line in text.splitlines() if line.count(":") == 6]
    return "".join(
        ":".join([*row[:5], str(home), "/bin/sh"] if row[0] == "root" else row) + "\n" for row in rows
    )
