"""Copies that never leave a partial file under the final name.

``CheckedCopy`` copies to a temporary name beside the target, compares the sizes of source and copy, then
renames the copy. Two kinds of program transfer the bytes: a program at the source (cp, scp), and a client at
the reporter that controls the servers of both ends (globus-url-copy, xrdcp).
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
# One session prints the size, then runs the program.
_SEND = 'wc -c < "$1" && shift && exec "$@"'
_FINISH = 'size=$(wc -c < "$1") && echo "$size" && [ "$size" -eq "$3" ] && exec mv -f -- "$1" "$2"'
_WRITE_MORE = (
    'head -c 1048576 /dev/zero | tee -a "$1" > /dev/null'  # tee, since error messages of ">>" vary by shell
)
_NOT_FOUND = 127
# scp and sftp quote a path that is not ASCII.
_AT_SOURCE = re.compile(r'\blocal (file )?"')
# The reporter's other variables (tokens, database URLs) must not reach a client.
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")


class CheckedCopy(FileTransfer):
    """Copies to a temporary name, compares the sizes, then renames. A failed copy leaves no file."""

    @abc.abstractmethod
    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        """Copy to *partial_path*; the result has the source's size. An error may leave a partial file."""

    def copy(
        self, source_path: str, target_path: str, *, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        partial_path = _partial_path(target_path)
        copying = f"cannot copy {self.names(source_path, target_path)}"
        try:
            sent = self._sent(copying, source_path, partial_path, options, timeout_seconds)
            self._finish(copying, partial_path, target_path, sent.bytes)
        except ProbeFailed:
            self._remove(partial_path)
            raise
        return sent

    def names(self, source_path: str, target_path: str) -> str:
        """Return "RESOURCE:PATH to RESOURCE:PATH" for messages."""
        return f"{self.source.resource.name}:{source_path} to {self.target.resource.name}:{target_path}"

    def source_bytes(self, path: str) -> int:
        """Return the size in bytes of the file *path* at the source.

        Raises:
            CannotCopy: the file cannot be read.
        """
        return parse_size(_output(self.source, ["sh", "-c", 'wc -c < "$1"', "sh", path]), self.source)

    def check_directory(self, target_path: str) -> None:
        """Raise CannotCopy unless the directory of *target_path* exists; some servers would create it."""
        _output(self.target, ["ls", "-d", "--", f"{posixpath.dirname(target_path)}/"])

    def write_error(self, partial_path: str) -> str:
        """Append a mebibyte to *partial_path*; return the system's error message, empty without an error.

        A full disk shows in this message, but not always in the message of the copy program.
        """
        try:
            argv = ["sh", "-c", _WRITE_MORE, "sh", partial_path]
            done = self.target.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
        except ProbeFailed:
            return ""
        return decisive_line(done.stderr).rpartition(": ")[2] if done.returncode != 0 else ""

    def _sent(
        self, copying: str, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        try:
            return self.send(source_path, partial_path, options, timeout_seconds)
        except CannotCopy as error:
            raise CannotCopy(
                f"{copying}: {error.message}",
                resource=error.resource,
                exit_status=error.exit_status,
                stderr_tail=error.stderr_tail,
            ) from None

    def _finish(self, copying: str, partial_path: str, target_path: str, size_bytes: int) -> None:
        argv = ["sh", "-c", _FINISH, "sh", partial_path, target_path, str(size_bytes)]
        done = self.target.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
        if done.returncode != 0:
            arrived = done.stdout.strip()
            cut = f"{arrived} of {size_bytes} bytes arrived" if arrived not in ("", str(size_bytes)) else ""
            reason = cut or decisive_line(done.stderr) or describe_exit(done.returncode)
            cause = self.write_error(partial_path) if cut else ""
            raise copy_failed(f"{copying}: {reason}{cause and f': {cause}'}", self.target, done)

    def _remove(self, partial_path: str) -> None:
        with contextlib.suppress(ProbeFailed):  # the first error counts
            self.target.shell.run(["rm", "-f", "--", partial_path], timeout_seconds=_TIDY_SECONDS)


class SourceProgram(CheckedCopy):
    """Copies with a program that runs at the source, in one stream and one attempt."""

    @abc.abstractmethod
    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        """Return the command to run at the source. Raises CannotCopy for unsupported paths or options."""

    def standard_input(self, source_path: str, target_path: str) -> str | None:  # noqa: ARG002
        """Return the text for the program's stdin; None if the program reads no stdin."""
        return None

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        command = self.command(source_path, partial_path, options)
        done = self.source.shell.run(
            ["sh", "-c", _SEND, "sh", source_path, *command],
            timeout_seconds=timeout_seconds,
            input=self.standard_input(source_path, partial_path),
        )
        if done.returncode != 0:
            raise self.failed(command[0], source_path, done)
        return Transferred(parse_size(done.stdout, self.source), done.seconds)

    def failed(self, program: str, source_path: str, done: Completed) -> CannotCopy:
        """Return the error of a failed *program*; the error names the end at fault."""
        reason = decisive_line(done.stderr) or describe_exit(done.returncode)
        if done.returncode == _NOT_FOUND and reason.startswith(("sh: ", "/bin/sh: ")):
            return copy_failed(
                f"{program} is not installed at {self.source.resource.name}", self.source, done
            )
        at_source = not done.stdout or source_path in reason or _AT_SOURCE.search(reason)
        return copy_failed(reason, self.source if at_source else self.target, done)


class ClientProgram(CheckedCopy):
    """Copies with a client at the reporter that controls the servers of both ends.

    Either end may set the option *path*: the PATH with which the client runs (default: the PATH of the
    reporter).
    """

    @abc.abstractmethod
    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        """Return the client's command. Raises CannotCopy for unsupported paths or options."""

    @abc.abstractmethod
    def judge(self, done: Completed, size_bytes: int, options: CopyOptions) -> Transferred:
        """Return the result of a copy of *size_bytes*, judged by the client's output and exit status.

        Raises:
            ProbeFailed: the copy failed. The error has the reason, and the resource at fault if known. The
                message of a CannotCopy does not name the two ends: the caller adds them.
        """

    def environment(self) -> Mapping[str, str]:
        """Return the client's environment variables."""
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        path = self.source.options.get("path") or self.target.options.get("path")
        return {**passed_on, **({"PATH": path} if path else {}), "LC_GRIDCAST_RUN": self.source.shell.label}

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        until = time.monotonic() + timeout_seconds
        size_bytes = self.source_bytes(source_path)
        done = self._run(self.command(source_path, partial_path, options), until, timeout_seconds)
        return self.judge(done, size_bytes, options)

    def _run(self, argv: list[str], until: float, limit_seconds: float) -> Completed:
        """Run the client until the monotonic time *until*: some clients hang if a server does not answer.

        *limit_seconds*, the limit of the whole copy, is for the message of TookTooLong.
        """
        left_seconds = until - time.monotonic()
        try:
            return process.run(
                argv,
                timeout_seconds=left_seconds,
                env=self.environment(),
                containment=self.source.shell.containment,
            )
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


def copy_failed(reason: str, end: End, done: Completed) -> CannotCopy:
    """Return the error for a failed copy that names *end* as the resource at fault."""
    return CannotCopy(
        reason, resource=end.resource.name, exit_status=done.returncode, stderr_tail=tail(done.stderr)
    )


def parse_size(text: str, end: End) -> int:
    """Parse the number of bytes from the output of ``wc`` at *end*; raise CannotCopy for other output."""
    words = text.split(None, 1)
    if not words or not words[0].isdecimal():
        name = end.resource.name
        raise CannotCopy(f"unreadable output of wc at {name}: {text[:200]!r}", resource=name)
    return int(words[0])


def _output(end: End, argv: list[str]) -> str:
    """Run a program at *end* and return its stdout. Raises CannotCopy if the program fails."""
    done = end.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
    if done.returncode != 0:
        raise copy_failed(decisive_line(done.stderr) or describe_exit(done.returncode), end, done)
    return done.stdout


def _partial_path(target_path: str) -> str:
    directory, name = posixpath.split(target_path)
    return posixpath.join(directory, f".{name}.{uuid.uuid4().hex[:8]}.part")
