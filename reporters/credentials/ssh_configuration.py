"""What the OpenSSH client makes of its configuration for one host, as ``ssh -G`` shows it."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# What ssh tries by itself.
_USUAL = frozenset(
    f"~/.ssh/id_{kind}" for kind in ("rsa", "ecdsa", "ecdsa_sk", "ed25519", "ed25519_sk", "xmss", "dsa")
)
_TOKEN = re.compile(r"%(.)|\$\{(\w+)\}")


@dataclass(frozen=True)
class Configuration:
    """Each option's values; names in lower case."""

    values: dict[str, list[str]]

    def one(self, name: str, otherwise: str = "") -> str:
        return self.values.get(name, [otherwise])[0]

    @property
    def identity_files(self) -> Sequence[str]:
        return self.values.get("identityfile", [])

    @property
    def certificate_files(self) -> Sequence[str]:
        return self.values.get("certificatefile", [])

    @property
    def names_keys(self) -> bool:
        """Whether certain keys are to be used, and no others."""
        return self.one("identitiesonly") == "yes" and not _USUAL.issuperset(self.identity_files)

    @property
    def agent(self) -> str:
        """The socket of the agent, empty for none."""
        asked_for = self.one("identityagent", "SSH_AUTH_SOCK")
        if asked_for == "none":
            return ""
        if asked_for == "SSH_AUTH_SOCK" or asked_for.startswith("$"):
            return os.environ.get(asked_for.lstrip("$"), "")
        return str(self.path(asked_for) or "")

    @property
    def has_other_ways(self) -> bool:
        """Whether we may get in without a key in a file: by Kerberos, with hardware."""
        ticket = "KRB5CCNAME" in os.environ or Path(f"/tmp/krb5cc_{os.getuid()}").exists()  # noqa: S108
        return (
            self.one("pubkeyauthentication", "yes") in ("no", "false")
            or self.one("pkcs11provider", "none") != "none"
            or (self.one("gssapiauthentication") == "yes" and ticket)
        )

    def path(self, text: str) -> Path | None:
        """A file's path with ssh's tokens replaced; None where they are beyond us."""
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
            "h": self.one("hostname"),
            "i": str(os.getuid()),
            "k": self.one("hostkeyalias", self.one("host")),
            "l": socket.gethostname(),
            "n": self.one("host"),
            "p": self.one("port"),
            "r": self.one("user"),
            "u": getpass.getuser(),
        }


def _home() -> str:
    """As ssh has it, which does not look at HOME."""
    return pwd.getpwuid(os.getuid()).pw_dir


def parse_configuration(text: str) -> Configuration:
    """From the output of ``ssh -G``."""
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(" ")
        if separator:
            values.setdefault(name, []).append(value)
    return Configuration(values)
