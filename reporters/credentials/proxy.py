"""Proxy certificates of the Grid Security Infrastructure (RFC 3820), checked with the ``openssl`` program.

What a server would refuse with a page of library errors is said here in a line, before anything is tried.
Revocation lists are left to the servers.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from probes.grid import Completed
from reporters import process
from reporters.base import Credential, CredentialUnfit
from reporters.credentials import files
from reporters.credentials.lifetime import Lifetime
from reporters.error_lines import decisive_line

_OPENSSL_SECONDS = 20.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_VALIDITY = re.compile(r"^\s*Not (Before|After)\s*: (.+ GMT)$", re.MULTILINE)
_WHY = re.compile(r"^error \d+ at (?P<depth>\d+) depth lookup: ?(?P<why>.+)$", re.MULTILINE)


class ProxyCertificate(Credential):
    """A proxy in *file*, with its chain and its key, of an authority in *ca_directory*. *now* is a clock."""

    def __init__(self, file: str, ca_directory: str, *, now: Callable[[], float] = time.time) -> None:
        self.file = file
        self.ca_directory = ca_directory
        self._now = now

    @classmethod
    def of(cls, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> ProxyCertificate:
        """What the options *proxy_file* and *ca_directory* name; else where Globus looks for them."""
        file = options.get("proxy_file") or environment.get("X509_USER_PROXY") or _usual_file()
        trusted = options.get("ca_directory") or environment.get("X509_CERT_DIR") or _usual_authorities()
        return cls(str(file), str(trusted))

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which Globus and its kin find it."""
        return {"X509_USER_PROXY": self.file, "X509_CERT_DIR": self.ca_directory}

    def check(self, *, needed_seconds: float) -> None:
        text = self._read()
        if "PRIVATE KEY-----" not in text:
            raise self._invalid("holds no private key")
        # First of all: what has expired is not valid in many other ways.
        self._lifetime().check(f"proxy {self.file}", now=self._now(), needed_seconds=needed_seconds)
        self._check_chain()

    def _read(self) -> str:
        """What is in the file, which must be a private one. Raises CredentialUnfit."""
        try:
            status, data = files.read(Path(self.file))
        except OSError as error:
            raise self._invalid(str(error.strerror)) from None
        if status.st_uid != os.geteuid():
            raise self._invalid(f"belongs to user {status.st_uid}, not to user {os.geteuid()}")
        if status.st_mode & _OTHERS:
            raise self._invalid(f"others may use it (mode {stat.S_IMODE(status.st_mode):o}, must be 600)")
        if len(data) >= files.LONGEST_BYTES:
            raise self._invalid("is too long for a proxy")
        return data.decode("utf-8", "replace")

    def _lifetime(self) -> Lifetime:
        """From when to when the whole chain is valid."""
        done = self._openssl("storeutl", "-noout", "-text", "-certs", self.file)
        lifetime = parse_lifetime(done.stdout)
        if lifetime is None:
            raise self._invalid("holds no certificate")
        return lifetime

    def _check_chain(self) -> None:
        if not files.is_directory(Path(self.ca_directory)):
            raise CredentialUnfit(f"no trusted authorities: {self.ca_directory} is not a directory")
        trusting = ["-CApath", self.ca_directory, "-no-CAfile"]
        done = self._openssl("verify", "-allow_proxy_certs", *trusting, "-untrusted", self.file, self.file)
        if done.returncode != 0:
            why = parse_refusal(done.stderr) or decisive_line(done.stderr)
            raise self._invalid(f"not trusted with the authorities in {self.ca_directory}: {why}")

    def _openssl(self, *arguments: str) -> Completed:
        # The authorities of web sites are none of the grid's.
        env = {"PATH": os.environ.get("PATH", os.defpath), "SSL_CERT_DIR": self.ca_directory}
        try:
            return process.run(["openssl", *arguments], timeout_seconds=_OPENSSL_SECONDS, env=env)
        except process.ProcessError as error:
            raise CredentialUnfit(f"cannot check proxy {self.file}: {error}") from None

    def _invalid(self, why: str) -> CredentialUnfit:
        return CredentialUnfit(f"no valid proxy: {self.file}: {why}")


def parse_lifetime(text: str) -> Lifetime | None:
    """When all certificates in an output of openssl's ``-text`` are valid; None where it shows none."""
    times: dict[str, list[float]] = {"Before": [], "After": []}
    for which, when in _VALIDITY.findall(text):
        times[which].append(float(ssl.cert_time_to_seconds(when)))
    if not times["Before"] or not times["After"]:
        return None
    return Lifetime(begins=max(times["Before"]), ends=min(times["After"]))


def parse_refusal(text: str) -> str:
    """Why ``openssl verify`` refuses a chain: what it says of the certificate next to the root."""
    said = {int(found["depth"]): found["why"] for found in _WHY.finditer(text)}
    return said[max(said)] if said else ""


def _usual_file() -> str:
    return f"/tmp/x509up_u{os.getuid()}"  # noqa: S108  # where all of Globus looks


def _usual_authorities() -> str:
    """The user's own directory of authorities where there is one, else the host's."""
    own = Path.home() / ".globus" / "certificates"
    return str(own) if files.is_directory(own) else "/etc/grid-security/certificates"
