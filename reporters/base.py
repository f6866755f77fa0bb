"""Contracts of the ways to reach a site: shells, transfers and batch systems, one file per way.

A plug-in is a module in ``shells/``, ``transfers/`` or ``batch/`` with a class ``Shell``, ``Transfer`` or
``Batch``; the keyword arguments of its constructor are the options that a resource may set for it.

Errors, all of them ``ProbeFailed``: the grid did not do it, again::

    ProbeFailed
    |-- CredentialUnfit     a proxy, token or key is missing, not valid, or ends too soon
    |-- CannotConnect       a resource cannot be reached, or does not let us in
    |-- ConnectionLost      it was reached, and then no more
    |-- CommandFailed       a program ended with a non-zero exit status
    |-- TookTooLong         a program ran longer than its limit
    |   `-- JobStuck        a job did not start or end in time, and what its batch system says of it
    |-- CannotCopy          a file did not arrive
    |-- JobFailed           a job was refused, was killed or ended badly
    |-- ResourceUnfit       no scratch, no space, no tool
    `-- CleanupFailed       something was left at a site
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from probes.base import ProbeFailed
from probes.grid import Capabilities, Completed, CopyOptions, Transferred
from reporters.config import Resource
from reporters.error_lines import decisive_line, tail
from reporters.process import Running


class CredentialUnfit(ProbeFailed):
    """A proxy, token or key is missing, not valid, or ends too soon."""


class CannotConnect(ProbeFailed):
    """A resource cannot be reached, or does not let us in."""


class ConnectionLost(ProbeFailed):
    """A resource was reached, and then no more."""


class CommandFailed(ProbeFailed):
    """A program ended with a non-zero exit status."""


class TookTooLong(ProbeFailed):
    """A program ran longer than its limit."""


class JobStuck(TookTooLong):
    """A job did not start or end in time. *situation*: what its batch system says, as in "it is PENDING"."""

    def __init__(self, message: str, *, situation: str, resource: str) -> None:
        super().__init__(message, resource=resource)
        self.situation = situation


class CannotCopy(ProbeFailed):
    """A file did not arrive."""


class JobFailed(ProbeFailed):
    """A job was refused, was killed or ended badly."""


class ResourceUnfit(ProbeFailed):
    """No scratch, no space, no tool."""


class CleanupFailed(ProbeFailed):
    """Something was left at a site."""


class Credential(abc.ABC):
    """Something at the reporter that lets it in somewhere."""

    @abc.abstractmethod
    def check(self, *, needed_seconds: float) -> None:
        """Raise CredentialUnfit unless it is there, usable, and valid for *needed_seconds* more.

        The message says which of these it is, as in "proxy /tmp/x509up_u1000 expires in 4 min, the run needs
        about 9 min".
        """


class ResourceShell(abc.ABC):
    """Runs programs at one resource. Thread-safe: several programs may run at once.

    Every argument reaches the program as it is. The environment variable ``LC_GRIDCAST_RUN`` holds the run's
    label wherever the resource lets it through, so that its admin can tell whose a process is. A shell that
    is not *interactive* runs programs to their end only: it cannot ``start`` one.
    """

    interactive: bool = True

    def __init__(self, resource: str, label: str) -> None:
        self.resource = resource
        self.label = label

    def credentials(self) -> Sequence[Credential]:
        """What the reporter needs to get in, as far as it can be checked beforehand."""
        return ()

    @abc.abstractmethod
    def connect(self, *, timeout_seconds: float) -> None:
        """Make sure of the connection, anew if it was lost. Raises CannotConnect."""

    @abc.abstractmethod
    def run(self, argv: Sequence[str], *, timeout_seconds: float, input: str | None = None) -> Completed:
        """Run *argv*; its exit status is 128 + n where signal n killed it, as a shell says it.

        Raises:
            TookTooLong: it was stopped after *timeout_seconds*.
            ConnectionLost: the connection ended before the program did, or there was none.
        """

    @abc.abstractmethod
    def start(self, argv: Sequence[str]) -> Running:
        """Start *argv* and return at once. Its input stays open until ``close_input`` or ``stop``.

        Raises:
            NoData: the shell is not interactive.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """End the connection and what still runs on it. May be called twice."""

    def check(
        self, argv: Sequence[str], *, timeout_seconds: float, doing: str, input: str | None = None
    ) -> str:
        """Like ``run``, but a non-zero exit status raises CommandFailed. Returns stdout."""
        done = self.run(argv, timeout_seconds=timeout_seconds, input=input)
        if done.returncode != 0:
            raise command_failed(f"cannot {doing} at {self.resource}", done, self.resource)
        return done.stdout


@dataclass(frozen=True)
class End:
    """One end of a transfer: a resource, its shell and its transfer's options."""

    resource: Resource
    shell: ResourceShell

    @property
    def options(self) -> dict[str, Any]:
        return options_of(self.resource.transfer)


class FileTransfer(abc.ABC):
    """Copies files from *source* to *target*, directly. Both ends have the same kind of transfer."""

    capabilities: Capabilities
    # What an end may say beside its kind, and of which type that is (reporters.options).
    option_types: ClassVar[Mapping[str, str]] = {}

    def __init__(self, source: End, target: End) -> None:
        self.source = source
        self.target = target

    @abc.abstractmethod
    def copy(
        self, source_path: str, target_path: str, *, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        """Copy one file; it appears under *target_path* only when it is whole.

        The seconds are the copy's own, without the checks around it.

        Raises:
            CannotCopy: names both ends and what the tool said.
            CredentialUnfit, CannotConnect: a server does not let us in, or cannot be reached.
            TookTooLong, ConnectionLost: as a shell does.
        """

    def credentials(self) -> Sequence[Credential]:
        """What the reporter needs at either end, as far as it can be checked beforehand."""
        return ()


class BatchJob(abc.ABC):
    """A job that was handed to a batch system."""

    @abc.abstractmethod
    def wait_started(self, *, timeout_seconds: float) -> float:
        """Block until the job's first breath; the seconds it was queued. Raises JobFailed, TookTooLong."""

    @abc.abstractmethod
    def wait_ended(self, *, timeout_seconds: float) -> float:
        """Block until the job ended; the seconds it ran. Raises JobFailed, TookTooLong."""

    @abc.abstractmethod
    def cancel(self) -> None:
        """Kill the job if it still lives. May be called at any time. Raises ProbeFailed if that failed."""


class BatchSystem(abc.ABC):
    """Hands jobs to the batch system of the resource behind *shell*."""

    survives_its_session: ClassVar[bool]  # whether a job lives on when the reporter's connection is lost

    def __init__(self, shell: ResourceShell) -> None:
        self.shell = shell

    @abc.abstractmethod
    def submit(self, argv: Sequence[str], *, directory: str, cpus: int, wall_seconds: float) -> BatchJob:
        """Hand in *argv*, to run in *directory* on *cpus* processors for at most *wall_seconds*.

        Keeps its files in a directory ``job-*`` below *directory*; where that holds a script ``cancel``, the
        job may still be there. Raises JobFailed.
        """


def options_of(reach: Mapping[str, Any]) -> dict[str, Any]:
    """The options beside the kind of a resource's shell, transfer or batch."""
    return {name: value for name, value in reach.items() if name != "kind"}


def command_failed(what: str, done: Completed, resource: str) -> CommandFailed:
    """The error for a program that ended badly: *what* could not be done, and what the program said."""
    said = decisive_line(done.stderr) or decisive_line(done.stdout) or ended_as(done.returncode)
    return CommandFailed(
        f"{what}: {said}", resource=resource, exit_status=done.returncode, stderr_tail=tail(done.stderr)
    )


def ended_as(returncode: int) -> str:
    """An exit status of a shell in words."""
    return f"killed by signal {returncode - 128}" if 128 < returncode < 192 else f"exit status {returncode}"
