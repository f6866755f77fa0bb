"""The effective configuration of the OpenSSH client for one host, as printed by ``ssh -G``."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reporters.account import own_home, own_name

# The keys that ssh tries by default.
_DEFAULT_KEYS = frozenset(
    f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
_TOKEN = re.compile(r"%(.)|\$\{(\w+)\}")


@dataclass(frozen=True)
class SshConfiguration:
    """The effective options of ssh for one host: *values* has a list for each name, in lower case."""

    values: dict[str, list[str]]

    def first(self, name: str, default: str = "") -> str:
        return self.values.get(name, [default])[0]

    @property
    def identity_files(self) -> Sequence[str]:
        return self.values.get("identityfile", [])

    @property
    def certificate_files(self) -> Sequence[str]:
        return self.values.get("certificatefile", [])

    @property
    def has_only_configured_keys(self) -> bool:
        """Whether ssh uses only configured keys: neither default keys nor other keys of an agent."""
        return self.first("identitiesonly") == "yes" and not _DEFAULT_KEYS.issuperset(self.identity_files)

    @property
    def agent(self) -> str:
        """The path of the SSH agent's socket; empty if there is no agent."""
        option = self.first("identityagent", "SSH_AUTH_SOCK")
        if option == "none":
            return ""
        if option == "SSH_AUTH_SOCK" or option.startswith("$"):
            return os.environ.get(option.lstrip("$"), "")
        return str(self.path(option) or "")

    @property
    def has_other_ways(self) -> bool:
        """Whether a login may succeed without a key file, by Kerberos or hardware."""
        ticket = "KRB5CCNAME" in os.environ or Path(f"/tmp/krb5cc_{os.getuid()}").exists()  # noqa: S108
        return (
            self.first("pubkeyauthentication", "yes") in ("no", "false")
            or self.first("pkcs11provider", "none") != "none"
            or (self.first("gssapiauthentication") == "yes" and ticket)
        )

    def path(self, text: str) -> Path | None:
        """Return the path *text* with ssh's tokens, such as %h, replaced; None if a token is unknown."""
        try:
            replaced = _TOKEN.sub(self._replaced, text)
            return Path(_home(), replaced[2:]) if replaced.startswith("~/") else Path(replaced).expanduser()
        except (KeyError, RuntimeError):  # another token or variable; no such user's home
            return None

    def _replaced(self, token: re.Match[str]) -> str:
        return os.environ[token[2]] if token[2] else self._tokens()[token[1]]

    def _tokens(self) -> dict[str, str]:
        return {
            "%": "%",
            "d": _home(),
            "h": self.first("hostname"),
            "i": str(os.getuid()),
            "k": self.first("hostkeyalias", self.first("host")),
            "l": socket.gethostname(),
            "n": self.first("host"),
            "p": self.first("port"),
            "r": self.first("user"),
            "u": own_name(),
        }


def _home() -> str:
    """Return the home directory from the user database; ssh ignores the variable HOME."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # ssh refuses to run then
        return str(own_home())


def parse_configuration(text: str) -> SshConfiguration:
    """Parse the output of ``ssh -G``."""
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(" ")
        if separator:
            values.setdefault(name, []).append(value)
    return SshConfiguration(values)
