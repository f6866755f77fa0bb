"""scp, sftp, or rsync over ssh, run at the source: the bytes go directly from site to site.

The source logs in to the target by its own ~/.ssh/config and with its own credentials. If the source's shell
forwards the reporter's agent, the source uses this agent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from probes.base import InvalidParameters
from probes.grid import Capabilities, Completed, CopyOptions, Transferred
from reporters.base import CannotCopy, End
from reporters.copying import SourceProgram, copy_failed
from reporters.shells.ssh import SERVER_ALIVE_COUNT, SERVER_ALIVE_SECONDS, as_options, host_key_options

_CONNECT_TIMEOUT_SECONDS = 10
_LARGEST_WRITE_BYTES = 255 * 1024  # limit of OpenSSH's SFTP server
# Old versions of scp and rsync pass the target's path to a shell at the target.
_SAFE_PATH = re.compile(r"/[A-Za-z0-9_./+,@%=-]*")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.:-]*", re.ASCII)
_SPECIAL_TO_SFTP = re.compile(r"[^A-Za-z0-9_./+,@%=-]", re.ASCII)
_NO_RSYNC_THERE = re.compile(r"remote command not found|rsync: (command )?not found")
# The SFTP protocol has no status for a full disk; rsync may lose the other end's message, and reports denied
# permission as a missing file. In these cases a write at the same place gives the reason.
_NO_REASON = re.compile(r": Failure$|\(code (3|11)\)$|\[receiver\] open .* failed: No such file or directory")

# From rsync's manual, "exit values", for the case that it prints nothing.
_RSYNC_ENDED = {
    3: "errors selecting input/output files, dirs",
    11: "error in file IO",
    12: "error in rsync protocol data stream",
    20: "received SIGUSR1 or SIGINT",
    23: "partial transfer due to error",
    30: "timeout in data send/receive",
}

PROGRAMS = ("scp", "rsync", "sftp")


class Transfer(SourceProgram):
    """Copies by scp, sftp or rsync.

    Options of the target:
        host, port, user: the login (default: the login of the target's shell); another host must have the
            same files.
        program: ``scp``, ``rsync`` (needed at both ends; compares checksums) or ``sftp`` (for a target
            without a shell).
    """

    option_types: ClassVar[Mapping[str, str]] = {
        "host": "str",
        "port": "int",
        "program": "str",
        "user": "str",
    }

    def __init__(self, source: End, target: End) -> None:
        super().__init__(source, target)
        self._program = target.options.get("program", "scp")
        if self._program not in PROGRAMS:
            raise InvalidParameters(
                f"resource {target.resource.name}: transfer 'ssh': program {self._program!r} is not one of "
                f"{', '.join(PROGRAMS)}"
            )
        self._host, self._port, self._user = _address(target)
        rsync = self._program == "rsync"
        self.capabilities = Capabilities(
            third_party=True,
            parallel_streams=False,
            server_checksum=rsync,
            source_tools=(self._program,),
            target_tools=("rsync",) if rsync and self._host == target.resource.shell.get("host") else (),
        )

    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        if not _SAFE_PATH.fullmatch(target_path):
            raise CannotCopy(
                f"only letters, digits and _./+,@%=- are safe in a path for every {self._program}, "
                f"not {target_path!r}",
                resource=self.target.resource.name,
            )
        host = f"[{self._host}]" if ":" in self._host else self._host
        address = f"{self._user}@{host}" if self._user else host
        port = ["-P", str(self._port)] if self._port else []
        if self._program == "rsync":
            return ["rsync", *self._rsync_options(), "--", source_path, f"{address}:{target_path}"]
        if self._program == "sftp":
            block = ["-B", str(min(options.block_bytes, _LARGEST_WRITE_BYTES))] if options.block_bytes else []
            return ["sftp", *block, "-b", "-", *port, *self._ssh_options(), "--", address]
        return ["scp", "-B", *port, *self._ssh_options(), "--", source_path, f"{address}:{target_path}"]

    def standard_input(self, source_path: str, target_path: str) -> str | None:
        if self._program != "sftp":
            return None
        if "\n" in source_path:
            raise CannotCopy(
                f"sftp supports no line break in a path: {source_path!r}", resource=self.source.resource.name
            )
        return f"put {sftp_quoted(source_path)} {sftp_quoted(target_path)}\n"

    def send(
        self, source_path: str, partial_path: str, options: CopyOptions, timeout_seconds: float
    ) -> Transferred:
        try:
            return super().send(source_path, partial_path, options, timeout_seconds)
        except CannotCopy as error:
            cause = self.write_error(partial_path) if _NO_REASON.search(error.message) else ""
            if not cause:
                raise
            raise CannotCopy(
                f"{error.message}: {cause}",
                resource=error.resource,
                exit_status=error.exit_status,
                stderr_tail=error.stderr_tail,
            ) from None

    def failed(self, program: str, source_path: str, done: Completed) -> CannotCopy:
        if program == "rsync" and _NO_RSYNC_THERE.search(done.stderr) and "rsync error" in done.stderr:
            return copy_failed(f"rsync is not installed at {self.target.resource.name}", self.target, done)
        if program == "rsync" and done.stdout and not done.stderr and done.returncode in _RSYNC_ENDED:
            reason = f"rsync error: {_RSYNC_ENDED[done.returncode]} (code {done.returncode})"
            return copy_failed(reason, self.target, done)
        return super().failed(program, source_path, done)

    def _ssh_options(self) -> list[str]:
        return as_options(
            **host_key_options(),
            BatchMode="yes",
            ConnectTimeout=str(_CONNECT_TIMEOUT_SECONDS),
            ServerAliveInterval=str(SERVER_ALIVE_SECONDS),
            ServerAliveCountMax=str(SERVER_ALIVE_COUNT),
            SetEnv=f"LC_GRIDCAST_RUN={self.source.shell.label}",
        )

    def _rsync_options(self) -> list[str]:
        # In place: the name is unique, and a killed receiver leaves no other temporary file.
        port = ["-p", str(self._port)] if self._port else []
        return ["--inplace", "--rsh", shlex.join(["ssh", *port, *self._ssh_options()])]


def sftp_quoted(path: str) -> str:
    """Quote *path* for sftp's command language, where wildcards work even within quotation marks."""
    return _SPECIAL_TO_SFTP.sub(lambda special: f"\\{special[0]}", path)


def _address(target: End) -> tuple[str, int | None, str]:
    """Return host, port and user by which other sites reach *target*.

    Raises:
        InvalidParameters: the host is missing or unsafe on a command line.
    """
    merged = {**target.resource.shell, **target.resource.transfer}
    host, port, user = merged.get("host") or None, merged.get("port"), merged.get("user") or ""
    for text in (host, user):
        if not isinstance(text, str) or not _SAFE_NAME.fullmatch(text) or text.startswith("-"):
            raise InvalidParameters(
                f"resource {target.resource.name}: transfer 'ssh': expected a host or a user, got {text!r}"
            )
    return str(host), port, user
