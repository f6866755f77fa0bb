"""A login at the host of a site, on which a reporter is installed: files copied, commands run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from probes.base import ProbeFailed
from reporters.error_lines import decisive_line
from reporters.remote.installation import VERSIONS
from reporters.remote.service import LOG as START_LOG
from reporters.remote.state_directory import IDENTITY, LOG, SITE_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from probes.grid import Completed
    from reporters.base import ResourceShell

LOGIN_SECONDS = 60.0
_SECONDS = 120.0  # of a program at the site, by default
_LOG_LINES = 12
_AUTHORITIES = "ca.pem"
# Prints "python PATH VERSION" of the first suitable interpreter, and "state" with the default directory.
_FIND = r"""
for python in "$@" python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9; do
  "$python" -I -c 'import sys
if sys.version_info < (3, 9): sys.exit(1)
print("python", sys.executable, "%d.%d.%d" % sys.version_info[:3])' 2> /dev/null && break
done
case $XDG_STATE_HOME in /*) ;; *) XDG_STATE_HOME=$HOME/.local/state ;; esac
printf 'state %s\n' "$XDG_STATE_HOME/gridcast-reporter"
"""
# Writes the base64 on its input to the file $1, unless the file has the digest $2 already.
_WRITE = r"""
import base64, hashlib, os, sys
path, expected = sys.argv[1:]
data = base64.b64decode(sys.stdin.buffer.read())
if hashlib.sha256(data).hexdigest() != expected:
    sys.exit("the file arrived damaged")
os.umask(0o077)
os.makedirs(os.path.dirname(path), exist_ok=True)
draft = "%s.%d" % (path, os.getpid())
with open(draft, "wb") as stream:
    stream.write(data)
    stream.flush()
    os.fsync(stream.fileno())
os.replace(draft, path)
"""
_FOUND = re.compile(r"^python (/.*) (\d+\.\d+\.\d+)$", re.MULTILINE)
_STATE = re.compile(r"^state (/.*)$", re.MULTILINE)


class DeploymentFault(Exception):
    """A step failed; the message says which, at which site, and what to do."""


@dataclass(frozen=True)
class Interpreter:
    """A Python at a site, 3.9 or newer."""

    path: str
    version: str


class SiteHost:
    """The host behind *shell*, connected while the context is open; messages call it *name*."""

    def __init__(self, shell: ResourceShell, name: str) -> None:
        self._shell = shell
        self.name = name
        self.python = Interpreter("python3", "")
        self.state = ""

    def __enter__(self) -> Self:
        try:
            self._shell.connect(timeout_seconds=LOGIN_SECONDS)
        except ProbeFailed as error:
            self._shell.close()
            raise DeploymentFault(f"cannot log in: {error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shell.close()

    def find(self, python: str = "", state: str = "") -> Interpreter:
        """Find the Python *python*, by default the first suitable one, and the state directory.

        Raises:
            DeploymentFault: there is no Python 3.9 or newer, or the host runs no commands.
        """
        done = self._run(["sh", "-c", _FIND, "sh", *([python] if python else [])])
        found, default = _FOUND.search(done.stdout), _STATE.search(done.stdout)
        if default is None:
            said = decisive_line(done.stderr) or decisive_line(done.stdout) or "nothing"
            raise DeploymentFault(f"the host runs no commands for us: it answers {said!r}")
        if found is None:
            raise DeploymentFault("the host has no Python 3.9 or newer; name one with --python")
        self.python = Interpreter(found[1], found[2])
        self.state = state or default[1]
        return self.python

    def archive(self, digest: str) -> str:
        """Return the path of the archive with *digest* at the site."""
        return f"{self.state}/{VERSIONS}/{digest}.pyz"

    def stage(self, archive: bytes) -> str:
        """Copy *archive* beside the other versions; return its digest, which is verified at the site."""
        digest = hashlib.sha256(archive).hexdigest()
        self._write(self.archive(digest), archive)
        return digest

    def write_authorities(self, content: bytes) -> str:
        """Copy certificates of authorities to the state directory; return the path."""
        path = f"{self.state}/{_AUTHORITIES}"
        self._write(path, content)
        return path

    def write_policy(self, content: bytes) -> bool:
        """Write the site policy, unless there is one; return whether the site has this one now."""
        present = self._read(SITE_POLICY)
        if present is None:
            self._write(f"{self.state}/{SITE_POLICY}", content)
        return present is None or present == content.decode("utf-8", "replace")

    def identity(self) -> Mapping[str, Any]:
        """Return the identity of the reporter that is enrolled there; empty if none is."""
        text = self._read(IDENTITY)
        try:
            document = json.loads(text or "{}")
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}

    def call(
        self, digest: str, command: str, *arguments: str, input: str | None = None, seconds: float = _SECONDS
    ) -> str:
        """Run *command* of the reporter of version *digest* and return its output.

        Raises:
            DeploymentFault: the command fails; the message has its words.
        """
        reporter = [self.python.path, "-I", self.archive(digest)]
        done = self._run(
            [*reporter, command, *arguments, "--state", self.state], input=input, seconds=seconds
        )
        if done.returncode != 0:
            said = done.stderr.strip() or decisive_line(done.stdout) or f"exit status {done.returncode}"
            raise DeploymentFault(f"`{command}` failed: {said}")
        return done.stdout

    def log_tail(self) -> str:
        """Return the last lines of the agent's log, and of what it said besides; empty without any."""
        logs = [f"{self.state}/{name}" for name in (LOG, START_LOG)]
        script = 'for log; do [ ! -s "$log" ] || tail -n "$0" -- "$log"; done'
        return self._run(["sh", "-c", script, str(_LOG_LINES), *logs]).stdout.strip()

    def exists(self) -> bool:
        """Return whether the state directory exists."""
        return self._run(["test", "-e", self.state]).returncode == 0

    def _read(self, name: str) -> str | None:
        done = self._run(["cat", "--", f"{self.state}/{name}"])
        return done.stdout if done.returncode == 0 else None

    def _write(self, path: str, data: bytes) -> None:
        argv = [self.python.path, "-I", "-c", _WRITE, path, hashlib.sha256(data).hexdigest()]
        done = self._run(argv, input=base64.b64encode(data).decode())
        if done.returncode != 0:
            raise DeploymentFault(f"cannot write {path}: {decisive_line(done.stderr)}")

    def _run(self, argv: Sequence[str], *, input: str | None = None, seconds: float = _SECONDS) -> Completed:
        try:
            return self._shell.run(argv, timeout_seconds=seconds, input=input)
        except ProbeFailed as error:
            raise DeploymentFault(f"{shlex.join(argv)[:80]}: {error}") from None
