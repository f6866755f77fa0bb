"""Transfers by a program that runs at the source, such as cp and scp: no half file under the final name."""

from __future__ import annotations

import abc
import contextlib
import posixpath
import uuid

from probes.base import Completed, ProbeFailed, Transferred
from reporters.base import CannotCopy, FileTransfer, ended_as
from reporters.complaints import decisive_line, tail

_CHECK_SECONDS = 60.0
_TIDY_SECONDS = 10.0
# Each script is one session: the size, then the work.
_SEND = 'wc -c < "$1" && shift && exec "$@"'
_ARRIVE = 'size=$(wc -c < "$1") && echo "$size" && [ "$size" -eq "$3" ] && exec mv -f -- "$1" "$2"'


class CopyingProgram(FileTransfer):
    """Copies to a name of its own beside the target, compares the sizes there, then renames.

    *streams* makes no difference: such programs have one.
    """

    @abc.abstractmethod
    def command(self, source_path: str, target_path: str) -> list[str]:
        """The program to run at the source. Raises CannotCopy for what it cannot take."""

    def copy(
        self,
        source_path: str,
        target_path: str,
        *,
        streams: int,  # noqa: ARG002  # the contract's
        timeout_seconds: float,
    ) -> Transferred:
        copying = f"cannot copy {self._names(source_path, target_path)}"
        half_path = _half_path(target_path)
        try:
            sent = self._send(copying, source_path, half_path, timeout_seconds)
            self._arrive(copying, half_path, target_path, sent.bytes)
        except ProbeFailed:
            self._remove(half_path)
            raise
        return sent

    def _names(self, source_path: str, target_path: str) -> str:
        return f"{self.source.resource.name}:{source_path} to {self.target.resource.name}:{target_path}"

    def _send(self, copying: str, source_path: str, half_path: str, timeout_seconds: float) -> Transferred:
        argv = ["sh", "-c", _SEND, "sh", source_path, *self.command(source_path, half_path)]
        done = self.source.shell.run(argv, timeout_seconds=timeout_seconds)
        if done.returncode != 0:
            said = decisive_line(done.stderr) or ended_as(done.returncode)
            at_source = "local" in said or source_path in said or not done.stdout
            end = self.source if at_source else self.target
            raise _cannot_copy(f"{copying}: {said}", end.resource.name, done)
        return Transferred(int(done.stdout.split()[0]), done.seconds)

    def _arrive(self, copying: str, half_path: str, target_path: str, size_bytes: int) -> None:
        argv = ["sh", "-c", _ARRIVE, "sh", half_path, target_path, str(size_bytes)]
        done = self.target.shell.run(argv, timeout_seconds=_CHECK_SECONDS)
        if done.returncode != 0:
            arrived = done.stdout.strip()
            cut = f"{arrived} of {size_bytes} bytes arrived" if arrived not in ("", str(size_bytes)) else ""
            said = cut or decisive_line(done.stderr) or ended_as(done.returncode)
            raise _cannot_copy(f"{copying}: {said}", self.target.resource.name, done)

    def _remove(self, half_path: str) -> None:
        with contextlib.suppress(ProbeFailed):  # what went wrong first is what counts
            self.target.shell.run(["rm", "-f", "--", half_path], timeout_seconds=_TIDY_SECONDS)


def _half_path(target_path: str) -> str:
    directory, name = posixpath.split(target_path)
    return posixpath.join(directory, f".{name}.{uuid.uuid4().hex[:8]}.part")


def _cannot_copy(message: str, resource: str, done: Completed) -> CannotCopy:
    return CannotCopy(message, resource=resource, exit_status=done.returncode, stderr_tail=tail(done.stderr))
