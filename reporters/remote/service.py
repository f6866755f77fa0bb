"""Services: the ways in which a site starts the agent after a reboot and keeps it running.

A kind of service is a module of ``services`` with a class ``SiteService``. Every kind starts the agent by the
script ``start`` in the state directory, so that an upgrade rewrites one file.
"""

from __future__ import annotations

import abc
import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from reporters.error_lines import decisive_line

LOG = "start.log"  # what the agent says before it can write its own log, and its last words
START = "start"
IF_NOT_RUNNING = "--if-not-running"
_LOG_BYTES = 1_000_000
_TOOL_SECONDS = 60.0
# Passed on to the agent: cron and batch systems start programs with almost no environment.
KEPT_VARIABLES = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SLURM_CONF",
)
_START_SCRIPT = """\
#!/bin/sh
# Written by `gridcast-reporter install`; starts the agent.
{exports}[ "$(wc -c < {log} 2> /dev/null || echo 0)" -lt {log_bytes} ] || : > {log}
exec {command} "$@" < /dev/null >> {log} 2>&1
"""


class ServiceFault(Exception):
    """A program of the site refused what a service asked for; the message has its words."""


@dataclass(frozen=True)
class Launch:
    """What a service starts: the agent of the state directory *state*.

    *options* are passed to the batch system, for services that are jobs. *argv* starts the agent; empty: the
    script ``start`` in *state*.
    """

    state: Path
    options: Sequence[str] = ()
    argv: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The name of the service, which differs between state directories of one account."""
        return f"gridcast-reporter-{hashlib.sha256(os.fsencode(self.state)).hexdigest()[:8]}"

    @property
    def start(self) -> Path:
        return self.state / START

    @property
    def job(self) -> Path:
        """The script of a job that submits itself again."""
        return self.state / "job"

    @property
    def log(self) -> Path:
        return self.state / LOG

    @property
    def words(self) -> Sequence[str]:
        """The words of the command that starts the agent."""
        return self.argv or ["/bin/sh", str(self.start)]

    @property
    def command(self) -> str:
        """The shell command that starts the agent."""
        return shlex.join(self.words)

    @property
    def command_if_not_running(self) -> str:
        """The shell command that starts the agent, and does nothing while it runs."""
        return f"{self.command} {IF_NOT_RUNNING}"


class AgentService(abc.ABC):
    """One way to start the agent. *rank*: of the available kinds, the one with the lowest is installed.

    Every method raises ServiceFault if a program of the site fails.
    """

    rank: ClassVar[int]
    summary: ClassVar[str]

    def __init__(self, launch: Launch) -> None:
        self.launch = launch

    @abc.abstractmethod
    def unavailable(self) -> str:
        """Return why the site cannot use this kind; empty if it can. Changes nothing."""

    def doubt(self) -> str:
        """Return why the site may never start the agent though its programs work; empty if it will."""
        return ""

    @abc.abstractmethod
    def text(self) -> str:
        """Return what ``install`` registers: a unit file, lines of a crontab, or a job script."""

    @abc.abstractmethod
    def by_hand(self) -> str:
        """Return in a sentence how a user registers ``text``, and removes it, without ``install``."""

    @abc.abstractmethod
    def install(self) -> None:
        """Register the service, unless it is registered, and start the agent, unless it runs."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop the agent. The service stays registered."""

    @abc.abstractmethod
    def remove(self) -> None:
        """Remove what ``install`` registered, if anything, and stop the agent."""

    @abc.abstractmethod
    def status(self) -> str:
        """Return in a few words what is registered and whether it is active."""


def start_script(launch: Launch, python: str, archive: Path, variables: Mapping[str, str]) -> str:
    """Return the script that runs the agent of *archive* by *python* with *variables* in its environment."""
    exports = "".join(f"{name}={shlex.quote(value)}; export {name}\n" for name, value in variables.items())
    command = shlex.join([python, *run_arguments(archive, launch.state)])
    return _START_SCRIPT.format(
        exports=exports, log=shlex.quote(str(launch.log)), log_bytes=_LOG_BYTES, command=command
    )


def run_arguments(archive: Path, state: Path) -> list[str]:
    """Return the arguments with which Python runs the agent."""
    return ["-I", str(archive), "run", "--state", str(state), "--quiet"]


def lacks(*programs: str) -> str:
    """Return that programs are missing from the PATH, by name; empty if none is."""
    missing = [program for program in programs if shutil.which(program) is None]
    return f"no {', '.join(missing)} on the PATH" if missing else ""


def ask(
    argv: Sequence[str], *, input: bytes = b"", directory: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the site, in *directory*, to its end; return its whole output, byte for byte.

    Raises:
        ServiceFault: the program cannot be run, or runs longer than a minute.
    """
    try:
        return subprocess.run(
            argv, input=input, cwd=directory, capture_output=True, timeout=_TOOL_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceFault(f"cannot run {shlex.join(argv)}: {error}") from None


def demand(argv: Sequence[str], *, input: bytes = b"", directory: Path | None = None) -> str:
    """Run a program of the site and return its output.

    Raises:
        ServiceFault: as ``ask``, or the exit status is not 0.
    """
    done = ask(argv, input=input, directory=directory)
    if done.returncode != 0:
        raise ServiceFault(f"{shlex.join(argv)}: {failure(done)}")
    return done.stdout.decode("utf-8", "replace")


def failure(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return why a program failed: the decisive line of its output, else its exit status."""
    outputs = (output.decode("utf-8", "replace") for output in (done.stderr, done.stdout))
    return next(filter(None, map(decisive_line, outputs)), f"exit status {done.returncode}")
