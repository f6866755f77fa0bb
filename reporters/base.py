"""Contracts of the ways to reach a site: shells, transfers and batch systems, one file per way.

A plug-in is a module in ``shells/``, ``transfers/`` or ``batch/`` with a class ``Shell``, ``Transfer`` or
``Batch``; the keyword arguments of its constructor are the options that a resource may set for it.

Errors, all of them ``ProbeFailed``: a failure of the grid; a later run may pass::

    ProbeFailed
    |-- CredentialUnfit     a proxy, token or key is missing, invalid, or expires too soon
    |-- CannotConnect       a resource is unreachable or refuses the login
    |-- ConnectionLost      an open connection ended
    |-- CommandFailed       a program ended with a non-zero exit status
    |-- TookTooLong         a program ran longer than its limit
    |   `-- JobStuck        a job did not start or end in time
    |-- CannotCopy          a copy failed
    |-- JobFailed           a job was refused, killed or failed
    |-- ResourceUnfit       a resource has no scratch directory or space, or lacks a program
    `-- CleanupFailed       a job, process or file was left behind at a site
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from probes.base import ProbeFailed
from probes.grid import Capabilities, Completed, CopyOptions, Transferred
from reporters.config import ResourceConfig
from reporters.containment import Containment
from reporters.error_lines import decisive_line, tail
from reporters.process import Running


class CredentialUnfit(ProbeFailed):
    """A proxy, token or key is missing, invalid, or expires too soon."""


class CannotConnect(ProbeFailed):
    """A resource is unreachable or refuses the login."""


class ConnectionLost(ProbeFailed):
    """An open connection to a resource ended."""


class CommandFailed(ProbeFailed):
    """A program ended with a non-zero exit status."""


class TookTooLong(ProbeFailed):
    """A program ran longer than its limit."""


class JobStuck(TookTooLong):
    """A job did not start or end in time. *situation* describes the state of the job: "it is PENDING"."""

    def __init__(self, message: str, *, situation: str, resource: str) -> None:
        super().__init__(message, resource=resource)
        self.situation = situation


class CannotCopy(ProbeFailed):
    """A copy failed."""


class JobFailed(ProbeFailed):
    """A job was refused, killed or failed."""


class ResourceUnfit(ProbeFailed):
    """A resource has no scratch directory or space, or lacks a program."""


class CleanupFailed(ProbeFailed):
    """A job, process or file was left behind at a site."""


class Credential(abc.ABC):
    """A file at the reporter with which the reporter authenticates to a resource."""

    @abc.abstractmethod
    def check(self, *, needed_seconds: float) -> None:
        """Raise CredentialUnfit unless the file exists, is usable, and stays valid for *needed_seconds*.

        The message names the reason, such as "proxy /tmp/x509up_u1000 expires in 4 min, the run needs about 9
        min".
        """


class ResourceShell(abc.ABC):
    """Runs programs at one resource. Thread-safe: several programs may run at once.

    Every argument reaches the program unchanged. The program's environment variable ``LC_GRIDCAST_RUN``
    contains the run's *label*, so that an admin can see which run a process belongs to; some resources
    discard the variable. Programs that the shell starts at the reporter belong to *containment*, if there is
    one. A shell that is not *interactive* cannot ``start`` a program, only ``run`` it to its
    end.
    """

    interactive: bool = True

    def __init__(self, resource: str, label: str) -> None:
        self.resource = resource
        self.label = label
        self.containment: Containment | None = None

    def credentials(self) -> Sequence[Credential]:
        """Return the credentials for the login that can be checked before the login."""
        return ()

    @abc.abstractmethod
    def connect(self, *, timeout_seconds: float) -> None:
        """Connect, or reconnect if the connection was lost.

        Raises:
            CannotConnect: the resource is unreachable or refuses the login.
        """

    @abc.abstractmethod
    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        """Run *argv* to its end; the exit status is 128 + n if signal n killed the program.

        Raises:
            TookTooLong: the program was stopped after *timeout_seconds*.
            ConnectionLost: there was no connection, or the connection ended before the program.
        """

    @abc.abstractmethod
    def start(self, argv: Sequence[str]) -> Running:
        """Start *argv* and return at once. Stdin stays open until ``Running.close_input`` or ``stop``.

        Raises:
            NoData: the shell is not interactive.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection and stop every program on it. May be called twice."""

    def check(
        self, argv: Sequence[str], *, timeout_seconds: float, doing: str, input: str | None = None
    ) -> str:
        """Run *argv* and return its stdout. Messages of errors begin with "cannot *doing* at RESOURCE".

        Raises:
            CommandFailed: the exit status is not 0.
        """
        done = self.run(argv, timeout_seconds=timeout_seconds, input=input)
        if done.returncode != 0:
            raise command_failed(f"cannot {doing} at {self.resource}", done, self.resource)
        return done.stdout


@dataclass(frozen=True)
class End:
    """One end of a transfer: a resource, the shell of the resource, and the options of its transfer."""

    resource: ResourceConfig
    shell: ResourceShell

    @property
    def options(self) -> dict[str, Any]:
        return options_of(self.resource.transfer)


class FileTransfer(abc.ABC):
    """Copies files directly from *source* to *target*. Both ends have the same kind of transfer."""

    capabilities: Capabilities
    # Type of each option of an end, in the notation of reporters.options.
    option_types: ClassVar[Mapping[str, str]] = {}

    def __init__(self, source: End, target: End) -> None:
        self.source = source
        self.target = target

    @abc.abstractmethod
    def copy(
        self, source_path: str, target_path: str, *, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        """Copy one file. The file appears under *target_path* only when the copy is complete.

        The seconds in the result cover the copy alone, without the checks before and after the copy.

        Raises:
            CannotCopy: the copy failed; the message names both ends and quotes the tool.
            CredentialUnfit: a server refuses the credential.
            CannotConnect: a server is unreachable or refuses the login.
            TookTooLong, ConnectionLost: as in ``ResourceShell.run``.
        """

    def credentials(self) -> Sequence[Credential]:
        """Return the credentials for both ends that can be checked before the copy."""
        return ()


class SubmittedJob(abc.ABC):
    """A job that was submitted to a batch system."""

    @abc.abstractmethod
    def wait_started(self, *, timeout_seconds: float) -> float:
        """Block until the job starts; return how many seconds it was queued.

        Raises:
            JobFailed: the job was cancelled or refused, or ended without a start.
            TookTooLong: the job did not start within *timeout_seconds*.
        """

    @abc.abstractmethod
    def wait_ended(self, *, timeout_seconds: float) -> float:
        """Block until the job ends; return its run time in seconds.

        Raises:
            JobFailed: the job was killed, or its exit status is not 0.
            TookTooLong: the job did not end within *timeout_seconds*.
        """

    @abc.abstractmethod
    def cancel(self) -> None:
        """Kill the job if it is alive. May be called at any time. Raises ProbeFailed if the job survives."""


class BatchSystem(abc.ABC):
    """Submits jobs to the batch system of the resource behind *shell*."""

    survives_its_session: ClassVar[bool]  # whether a job survives the loss of the connection

    def __init__(self, shell: ResourceShell) -> None:
        self.shell = shell

    @abc.abstractmethod
    def submit(self, argv: Sequence[str], *, directory: str, cpus: int, wall_seconds: float) -> SubmittedJob:
        """Submit *argv*, to run in *directory* on *cpus* processors for at most *wall_seconds*.

        The job's files are in a directory ``job-*`` below *directory*. While ``job-*`` contains a script
        ``cancel``, the job may still be queued or running.

        Raises:
            JobFailed: the batch system does not accept the job.
        """


def options_of(method: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in *method* without the kind.

    *method* is the ``shell``, ``transfer`` or ``batch`` of a resource.
    """
    return {name: value for name, value in method.items() if name != "kind"}


def command_failed(action: str, done: Completed, resource: str) -> CommandFailed:
    """Return the error for a failed program; the message begins with *action*, such as "cannot read x"."""
    reason = decisive_line(done.stderr) or decisive_line(done.stdout) or describe_exit(done.returncode)
    return CommandFailed(
        f"{action}: {reason}", resource=resource, exit_status=done.returncode, stderr_tail=tail(done.stderr)
    )


def describe_exit(returncode: int) -> str:
    """Return an exit status in words; as in a shell, 128 + n means that signal n killed the program."""
    return f"killed by signal {returncode - 128}" if 128 < returncode < 192 else f"exit status {returncode}"
