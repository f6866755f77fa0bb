"""Proxy certificates of the Grid Security Infrastructure (RFC 3820), checked with the ``openssl`` program.

A server refuses an invalid proxy with a page of library errors; these checks report one line, before any
connection. Only the servers check revocation lists.
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
from reporters.account import own_home
from reporters.base import Credential, CredentialUnfit
from reporters.credentials import files
from reporters.credentials.lifetime import Lifetime
from reporters.error_lines import decisive_line

_OPENSSL_SECONDS = 20.0
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_VALIDITY = re.compile(r"^\s*Not (Before|After)\s*: (.+ GMT)$", re.MULTILINE)
_REASON = re.compile(r"^error \d+ at (?P<depth>\d+) depth lookup: ?(?P<reason>.+)$", re.MULTILINE)


class ProxyCertificate(Credential):
    """A proxy certificate: *file* contains the proxy, its chain and its private key.

    An authority in *ca_directory* must have issued the chain. *now* returns the time in seconds since the
    epoch.
    """

    def __init__(self, file: str, ca_directory: str, *, now: Callable[[], float] = time.time) -> None:
        self.file = file
        self.ca_directory = ca_directory
        self._now = now

    @classmethod
    def of(cls, options: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> ProxyCertificate:
        """Return the proxy that the options *proxy_file* and *ca_directory* name.

        Without an option, the path comes from Globus' variables in *environment*, or else is Globus' default
        path.
        """
        file = options.get("proxy_file") or environment.get("X509_USER_PROXY") or _default_file()
        trusted = options.get("ca_directory") or environment.get("X509_CERT_DIR") or _default_authorities()
        return cls(str(file), str(trusted))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which Globus clients find the proxy."""
        return {"X509_USER_PROXY": self.file, "X509_CERT_DIR": self.ca_directory}

    def check(self, *, needed_seconds: float) -> None:
        text = self._read()
        if "PRIVATE KEY-----" not in text:
            raise self._invalid("holds no private key")
        # First, because an expired chain causes other errors, too.
        self._lifetime().check(f"proxy {self.file}", now=self._now(), needed_seconds=needed_seconds)
        self._check_chain()

    def _read(self) -> str:
        """Return the text of the file.

        Raises:
            CredentialUnfit: the file cannot be read, is accessible to other users, or is too long.
        """
        try:
            status, data = files.read(Path(self.file))
        except OSError as error:
            raise self._invalid(str(error.strerror)) from None
        if status.st_uid != os.geteuid():
            raise self._invalid(f"belongs to user {status.st_uid}, not to user {os.geteuid()}")
        if status.st_mode & _OTHERS:
            raise self._invalid(f"accessible to others (mode {stat.S_IMODE(status.st_mode):o}, must be 600)")
        if len(data) >= files.LONGEST_BYTES:
            raise self._invalid("is too long for a proxy")
        return data.decode("utf-8", "replace")

    def _lifetime(self) -> Lifetime:
        """Return the period in which all certificates of the file are valid."""
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
            reason = parse_refusal(done.stderr) or decisive_line(done.stderr)
            raise self._invalid(f"not trusted with the authorities in {self.ca_directory}: {reason}")

    def _openssl(self, *arguments: str) -> Completed:
        # The grid's authorities replace those for web sites.
        env = {"PATH": os.environ.get("PATH", os.defpath), "SSL_CERT_DIR": self.ca_directory}
        try:
            return process.run(["openssl", *arguments], timeout_seconds=_OPENSSL_SECONDS, env=env)
        except process.ProcessError as error:
            raise CredentialUnfit(f"cannot check proxy {self.file}: {error}") from None

    def _invalid(self, reason: str) -> CredentialUnfit:
        return CredentialUnfit(f"no valid proxy: {self.file}: {reason}")


def parse_lifetime(text: str) -> Lifetime | None:
    """Return the period in which all certificates in *text* are valid; None if *text* has no certificate.

    *text* is the output of openssl with the option ``-text``.
    """
    times: dict[str, list[float]] = {"Before": [], "After": []}
    for limit, when in _VALIDITY.findall(text):
        times[limit].append(float(ssl.cert_time_to_seconds(when)))
    if not times["Before"] or not times["After"]:
        return None
    return Lifetime(begins=max(times["Before"]), ends=min(times["After"]))


def parse_refusal(text: str) -> str:
    """Return why ``openssl verify`` refuses a chain: the error for the certificate nearest to the root."""
    reasons = {int(match["depth"]): match["reason"] for match in _REASON.finditer(text)}
    return reasons[max(reasons)] if reasons else ""


def _default_file() -> str:
    return f"/tmp/x509up_u{os.getuid()}"  # noqa: S108  # the default of Globus


def _default_authorities() -> str:
    """Return the user's directory of authorities if it exists, else the directory of the host."""
    own = own_home() / ".globus" / "certificates"
    return str(own) if files.is_directory(own) else "/etc/grid-security/certificates"
