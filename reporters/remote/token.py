"""The short-lived token that the agent signs and sends with each request."""

from __future__ import annotations

import base64
import json
import threading

from reporters.remote import signing
from reporters.remote.clock import SiteClock
from reporters.remote.identity import ReporterIdentity
from reporters.remote.state_directory import StateDirectory

PREFIX = "gcrep"
VALID_SECONDS = 600.0
_RENEW_SECONDS = 60.0  # before the end
_BACKDATED_SECONDS = 10.0  # the server's clock is known to within a bound


class TokenSource:
    """Signs tokens of *identity* with the private key in *state*.

    A token is used until shortly before its end. Thread-safe.
    """

    def __init__(self, identity: ReporterIdentity, state: StateDirectory, clock: SiteClock) -> None:
        self._identity, self._clock = identity, clock
        self._key = state.path / identity.key_file
        self._method = signing.load(identity.method)
        self._signing = threading.Lock()
        self._token, self._steady_until = "", 0.0

    def token(self) -> str:
        """Return a valid token. Raises SigningError if the program that signs fails."""
        with self._signing:
            if not self._token or self._clock.steady() > self._steady_until:
                self._token = self._sign()
                self._steady_until = self._clock.steady() + VALID_SECONDS - _RENEW_SECONDS
            return self._token

    def discard(self) -> None:
        """Sign another token next time: the server refused this one."""
        with self._signing:
            self._token = ""

    def _sign(self) -> str:
        issued_at = int(self._clock.server_seconds() - _BACKDATED_SECONDS)
        payload = {
            "reporter": self._identity.reporter,
            "key": self._identity.key_fingerprint,
            "server": self._identity.server_fingerprint,
            "issued_at": issued_at,
            "expires_at": issued_at + int(VALID_SECONDS),
        }
        text = _base64url(json.dumps(payload, separators=(",", ":")))
        return f"{PREFIX}.{text}.{_base64url(self._method.sign(self._key, signing.TOKEN, text))}"


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
