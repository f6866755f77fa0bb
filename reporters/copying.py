"""Transfers by a program: no half file under the final name, whatever the program does.

``CheckedCopy`` copies to a name of its own beside the target, compares the sizes there, then renames. How the
bytes get there is for two kinds of program: one that runs at the source (cp, scp), and a client that runs at
the reporter and tells the servers of both ends what to do (globus-url-copy, xrdcp).
"""

from __future__ import annotations

import abc
import contextlib
import os
import posixpath
import re
import time
import uuid
from collections.abc import Mapping

from probes.base import ProbeFailed
from probes.grid import Completed, CopyOptions, Transferred
from reporters import process
from reporters.base import CannotCopy, ConnectionLost, End, FileTransfer, TookTooLong, describe_exit
from reporters.error_lines import decisive_line, tail

_CHECK_SECONDS = 60.0
_TIDY_SECONDS = 10.0
# The script is one session: the size, then the work.
_SEND = 'wc -c < "$1" && shift && exec "$@"'
_ARRIVE = 'size=$(wc -c < "$1") && echo "$size" && [ "$size" -eq "$3" ] && exec mv -f -- "$1" "$2"'
_WRITE_MORE = (
    'head -c 1048576 /dev/zero | tee -a "$1" > /dev/null'  # not by ">>": shells have words of their own
)
_NOT_FOUND = 127
# scp and sftp quote a path that is not ASCII.
_AT_SOURCE = re.compile(r'\blocal (file )?"')
# The reporter's other variables (tokens, database URLs ...) are none of a client's business.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


class CheckedCopy(FileTransfer):
    """Copies to a name beside the target, compares the sizes there, then renames; else nothing stays."""

    @abc.abstractmethod
    def send(
        self, source_path: str, half_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        """Copy to *half_path*; the bytes are those of the source. Raises ProbeFailed, without tidying up."""

    def copy(
        self, source_path: str, target_path: str, *, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        half_path = _half_path(target_path)
        copying = f"cannot copy {self.names(source_path, target_path)}"
        try:
            sent = self._sent(copying, source_path, half_path, options, timeout_seconds)
            self._arrive(copying, half_path, target_path, sent.bytes)
        except ProbeFailed:
            self._remove(half_path)
            raise
        return sent

    def names(self, source_path: str, target_path: str) -> str:
        """Both ends, for messages."""
        return f"{self.source.resource.name}:{source_path} to {self.target.resource.name}:{target_path}"

    def source_bytes(self, path: str) -> int:
        """The size of a file at the source. Raises CannotCopy."""
        return parse_size(_said(self.source, ["sh", "-c", 'wc -c < "$1"', "sh", path]), self.source)

    def check_directory(self, target_path: str) -> None:
        """Raise CannotCopy unless the target's directory exists: some servers make what is missing."""
        _said(self.target, ["ls", "-d", "--", f"{posixpath.dirname(target_path)}/"])

    def why_no_more(self, half_path: str) -> str:
        """What the target's system says when a little more is written there; empty where it does not mind.

        For tools that only say that something went wrong, or that the other end hung up.
        """
        try:
            argv = ["sh", "-c", _WRITE_MORE, "sh", half_path]
            done = self.target.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
        except ProbeFailed:  # then what is known has to do
            return ""
        return decisive_line(done.stderr).rpartition(": ")[2] if done.returncode != 0 else ""

    def _sent(
        self, copying: str, source_path: str, half_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        try:
            return self.send(source_path, half_path, options, timeout_seconds)
        except CannotCopy as error:
            raise CannotCopy(
                f"{copying}: {error.message}",
                resource=error.resource,
                exit_status=error.exit_status,
                stderr_tail=error.stderr_tail,
            ) from None

    def _arrive(self, copying: str, half_path: str, target_path: str, size_bytes: int) -> None:
        argv = ["sh", "-c", _ARRIVE, "sh", half_path, target_path, str(size_bytes)]
        done = self.target.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
        if done.returncode != 0:
            arrived = done.stdout.strip()
            cut = f"{arrived} of {size_bytes} bytes arrived" if arrived not in ("", str(size_bytes)) else ""
            said = cut or decisive_line(done.stderr) or describe_exit(done.returncode)
            why = self.why_no_more(half_path) if cut else ""
            raise refused(f"{copying}: {said}{why and f': {why}'}", self.target, done)

    def _remove(self, half_path: str) -> None:
        with contextlib.suppress(ProbeFailed):  # what went wrong first is what counts
            self.target.shell.run(["rm", "-f", "--", half_path], timeout_seconds=_TIDY_SECONDS)


class SourceProgram(CheckedCopy):
    """A program at the source. It has one stream, and tries once."""

    @abc.abstractmethod
    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        """The program to run at the source. Raises CannotCopy for what it cannot take."""

    def standard_input(self, source_path: str, target_path: str) -> str | None:  # noqa: ARG002
        """What the program reads, if anything."""
        return None

    def send(
        self, source_path: str, half_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        command = self.command(source_path, half_path, options)
        done = self.source.shell.run(
            ["sh", "-c", _SEND, "sh", source_path, *command],
            timeout_seconds=timeout_seconds,
            input=self.standard_input(source_path, half_path),
        )
        if done.returncode != 0:
            raise self.failed(command[0], source_path, done)
        return Transferred(parse_size(done.stdout, self.source), done.seconds)

    def failed(self, program: str, source_path: str, done: Completed) -> CannotCopy:
        """What came of a *program* that ended badly, and at which end."""
        said = decisive_line(done.stderr) or describe_exit(done.returncode)
        if done.returncode == _NOT_FOUND and said.startswith(("sh: ", "/bin/sh: ")):
            return refused(f"{program} is not installed at {self.source.resource.name}", self.source, done)
        at_source = not done.stdout or source_path in said or _AT_SOURCE.search(said)
        return refused(said, self.source if at_source else self.target, done)


class ClientProgram(CheckedCopy):
    """A client at the reporter that tells the servers of both ends what to do.

    Option of either end: *path*, to find the client on instead of the reporter's PATH.
    """

    @abc.abstractmethod
    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        """The client to run. Raises CannotCopy for what it cannot take."""

    @abc.abstractmethod
    def judge(self, done: Completed, size_bytes: int, options: CopyOptions) -> Transferred:
        """What came of copying *size_bytes*, by everything that the client said, not by its status alone.

        Raises ProbeFailed: what is wrong in words (CannotCopy without naming both ends), and the resource at
        fault where that can be told.
        """

    def environment(self) -> Mapping[str, str]:
        """The client's environment."""
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        path = self.source.options.get("path") or self.target.options.get("path")
        return {**passed_on, **({"PATH": path} if path else {}), "LC_GRIDCAST_RUN": self.source.shell.label}

    def send(
        self, source_path: str, half_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        until = time.monotonic() + timeout_seconds
        size_bytes = self.source_bytes(source_path)
        done = self._run(self.command(source_path, half_path, options), until, timeout_seconds)
        return self.judge(done, size_bytes, options)

    def _run(self, argv: list[str], until: float, limit_seconds: float) -> Completed:
        """Run the client with a hard limit, that of the copy: some hang for ever where nothing answers."""
        left_seconds = until - time.monotonic()
        try:
            return process.run(argv, timeout_seconds=left_seconds, env=self.environment())
        except process.TimedOut as error:
            raise TookTooLong(
                f"{argv[0]} from {self.source.resource.name} to {self.target.resource.name} ran longer than "
                f"{limit_seconds:g} s and was stopped",
                resource=self.target.resource.name,
                stderr_tail=tail(error.partial.stderr),
            ) from None
        except process.ProgramMissing as error:
            raise CannotCopy(f"{error} at the reporter", resource=self.source.resource.name) from None
        except process.GuardianLost as error:
            raise ConnectionLost(f"{argv[0]}: {error}", resource=self.source.resource.name) from None


def refused(said: str, end: End, done: Completed) -> CannotCopy:
    """The error for a program that could not copy, because of *end*."""
    return CannotCopy(
        said, resource=end.resource.name, exit_status=done.returncode, stderr_tail=tail(done.stderr)
    )


def parse_size(text: str, end: End) -> int:
    """The number of bytes with which what ``wc`` prints at *end* begins. Raises CannotCopy."""
    words = text.split(None, 1)
    if not words or not words[0].isdecimal():
        name = end.resource.name
        raise CannotCopy(f"unreadable output of wc at {name}: {text[:200]!r}", resource=name)
    return int(words[0])


def _said(end: End, argv: list[str]) -> str:
    """What a program says at *end*. Raises CannotCopy unless it ends well."""
    done = end.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
    if done.returncode != 0:
        raise refused(decisive_line(done.stderr) or describe_exit(done.returncode), end, done)
    return done.stdout


def _half_path(target_path: str) -> str:
    directory, name = posixpath.split(target_path)
    return posixpath.join(directory, f".{name}.{uuid.uuid4().hex[:8]}.part")
