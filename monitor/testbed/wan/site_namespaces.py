"""A site's namespaces, held by its first process: network, processes, mounts, host name.

Nothing is written below /etc or /run: a namespace has no name but its first process, and ends with it. Files
that a site has of its own (its hosts, its accounts) are mounted over the machine's, for the site alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.testbed.errors import NotServing
from monitor.testbed.middleware.programs import locate
from reporters import process

_UP_SECONDS = 10.0
# The first process of a process namespace: a shell, which collects the orphans that fall to it. It learns its
# number outside from the machine's /proc, which is still mounted then.
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
    """Those of one site; *pid* is their first process, as the machine counts."""

    name: str
    pid: int
    running: process.Running

    @property
    def prefix(self) -> tuple[str, ...]:
        """What a command begins with that is to run in there."""
        kinds = ("--net", "--uts", "--mount", "--pid")
        return (locate("nsenter"), f"--target={self.pid}", *kinds, "--")


@contextlib.contextmanager
def holding(name: str, *, mounts: Mapping[Path, str], environment: Mapping[str, str]) -> Iterator[Namespaces]:
    """Namespaces with the host name *name* until the context ends; then nothing lives in there any more.

    *mounts* are files of its own -> what of the machine's they cover. Raises NotServing, MissingProgram.
    """
    unshare = [locate("unshare"), "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--"]
    covered = [word for ours, theirs in mounts.items() for word in (str(ours), theirs)]
    argv = [*unshare, "sh", "-c", _FIRST, "site", name, *covered]
    with process.start(argv, env=environment) as running:
        if not running.wait_for_output(lambda text: "\n" in text, _UP_SECONDS):
            raise NotServing(f"no namespaces for {name}: {_said(running)}")
        yield Namespaces(name, int(running.output), running)


def _said(running: process.Running) -> str:
    done = running.poll()
    return (done.stderr.strip() or f"status {done.returncode}") if done else "not ready in time"


def covers(directory: Path, hosts: Mapping[str, str], home: Path) -> dict[Path, str]:
    """Write a site's hosts (name -> address) and accounts; what of the machine's they cover.

    Root's home is *home*, and root may log in with a key although no password opens the account.
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
    """The accounts of *text* (an /etc/passwd) with root at home in *home*."""
    rows = [line.split(":") for line in text.splitlines() if line.count(":") == 6]
    return "".join(
        ":".join([*row[:5], str(home), "/bin/sh"] if row[0] == "root" else row) + "\n" for row in rows
    )
