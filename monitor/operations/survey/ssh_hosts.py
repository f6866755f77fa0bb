"""The hosts of an SSH configuration, and the addresses to which the OpenSSH client resolves their names."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reporters import process
from reporters.account import expanded
from reporters.credentials.ssh_configuration import parse_configuration

USER_CONFIGURATION = Path("~/.ssh/config")
_KEYWORD = re.compile(r"^\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$")
_MAX_DEPTH = 16  # of included files, as in OpenSSH
_RESOLVE_SECONDS = 10.0


@dataclass(frozen=True)
class SshHost:
    """The name of a host at the reporter, and the address, port and user that the SSH client uses for it."""

    name: str
    address: str
    port: int
    user: str

    @property
    def alias(self) -> str:
        """Return the host in ``name``, which may be USER@HOST."""
        return self.name.rpartition("@")[2]

    @property
    def given_user(self) -> str | None:
        """Return the user in ``name``; None if the SSH configuration has to define the user."""
        return self.name.rpartition("@")[0] or None


class Unresolved(Exception):
    """The OpenSSH client refuses a name; the message is the error message of the client."""


def configured_names(config: Path) -> list[str]:
    """Return the host names of *config* and its included files, without patterns, in order.

    Raises:
        OSError: *config* cannot be read.
    """
    names = dict.fromkeys(_names(expanded(str(config)), _MAX_DEPTH))
    return [name for name in names if not re.search(r"[*?!]", name)]


def resolve(name: str, config: Path | None) -> SshHost:
    """Ask ``ssh -G`` for the address, the port and the user of *name*.

    Raises:
        Unresolved: the client refuses the name or the configuration.
    """
    option = ["-F", str(config)] if config else []
    try:
        done = process.run(["ssh", "-G", *option, "--", name], timeout_seconds=_RESOLVE_SECONDS)
    except process.ProcessError as error:
        raise Unresolved(str(error)) from None
    if done.returncode != 0:
        raise Unresolved(done.stderr.strip() or f"ssh -G {name} ended with exit status {done.returncode}")
    shown = parse_configuration(done.stdout)
    return SshHost(name, shown.first("hostname"), int(shown.first("port")), shown.first("user"))


def _names(file: Path, depth: int) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _KEYWORD.match(line)
        keyword, value = (match[1].lower(), match[2]) if match else ("", "")
        words = _words(value)
        if keyword == "host":
            yield from words
        elif keyword == "include" and depth > 0:
            for word in words:
                # Relative names are relative to ~/.ssh, whatever the file.
                try:
                    pattern = expanded(str(USER_CONFIGURATION)).parent / expanded(word)
                except RuntimeError:  # the home of an unknown user
                    continue
                for included in sorted(Path("/").glob(str(pattern.relative_to("/")))):
                    yield from _names(included, depth - 1)


def _words(value: str) -> list[str]:
    """Split the arguments of a keyword at spaces outside quotation marks; a comment ends the arguments."""
    try:
        return shlex.split(value, comments=True)
    except ValueError:  # a quotation mark without its partner; the client refuses the file, too
        return []
