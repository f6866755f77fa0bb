"""scp, run at the source: the bytes go from site to site, never through the reporter.

The source reaches the target with credentials of its own (or with the reporter's agent, where the source's
shell forwards it) and with what its own ~/.ssh/config says.
"""

from __future__ import annotations

import re

from probes.grid import Capabilities, CopyOptions
from reporters.base import CannotCopy, End
from reporters.copying import SourceProgram
from reporters.shells.ssh import SERVER_ALIVE_COUNT, SERVER_ALIVE_SECONDS, as_options

_CONNECT_TIMEOUT_SECONDS = 10
# Old versions of scp hand the target's path to a shell at the target.
_SAFE_PATH = re.compile(r"/[A-Za-z0-9_./+,@%=-]*")
_SAFE_NAME = re.compile(r"[A-Za-z0-9_.:-]*", re.ASCII)


class Transfer(SourceProgram):
    """Options of the target, as other sites see it: *host*, *port*, *user*; by default its shell's."""

    capabilities = Capabilities(third_party=True, parallel_streams=False, server_checksum=False)

    def __init__(self, source: End, target: End) -> None:
        super().__init__(source, target)
        self._host, self._port, self._user = _address(target)

    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        if not _SAFE_PATH.fullmatch(target_path):
            raise CannotCopy(
                f"only letters, digits and _./+,@%=- are safe in a path for every scp, not {target_path!r}",
                resource=self.target.resource.name,
            )
        ssh_options = as_options(
            BatchMode="yes",
            StrictHostKeyChecking="yes",
            ConnectTimeout=str(_CONNECT_TIMEOUT_SECONDS),
            ServerAliveInterval=str(SERVER_ALIVE_SECONDS),
            ServerAliveCountMax=str(SERVER_ALIVE_COUNT),
            SetEnv=f"LC_GRIDCAST_RUN={self.source.shell.label}",
        )
        host = f"[{self._host}]" if ":" in self._host else self._host
        address = f"{self._user}@{host}" if self._user else host
        port = ["-P", str(self._port)] if self._port else []
        return ["scp", "-B", *port, *ssh_options, "--", source_path, f"{address}:{target_path}"]


def _address(target: End) -> tuple[str, int | None, str]:
    """Where other sites reach *target*. Raises CannotCopy."""
    seen = {**target.resource.shell, **target.resource.transfer}
    host, port, user = seen.get("host"), seen.get("port"), seen.get("user") or ""
    for text in (host, user):
        if not isinstance(text, str) or not _SAFE_NAME.fullmatch(text) or text.startswith("-"):
            raise CannotCopy(
                f"cannot copy to {target.resource.name}: scp takes no host or user {text!r}",
                resource=target.resource.name,
            )
    return str(host), port, user
