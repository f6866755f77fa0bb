"""The short-lived token that the agent signs and sends with each request."""

from __future__ import annotations

import base64
import json
import threading
from dataclasses import replace

from reporters.remote import identity as identities
from reporters.remote import signing
from reporters.remote.clock import SiteClock
from reporters.remote.identity import ReporterIdentity
from reporters.remote.signing.base import SigningUnavailable
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError

PREFIX = "gcrep"
VALID_SECONDS = 600.0
_RENEW_SECONDS = 60.0  # before the end
_BACKDATED_SECONDS = 10.0  # the server's clock is known to within a bound


class TokenSource:
    """Signs tokens of *identity* with the private key in *state*.

    A token is used until shortly before its end. After a new enrolment with the same server the tokens are
    those of the new key. Thread-safe.
    """

    def __init__(self, identity: ReporterIdentity, state: StateDirectory, clock: SiteClock) -> None:
        self._identity, self._state, self._clock = identity, state, clock
        self._file = state.version(IDENTITY)
        self._method = signing.load(identity.method)
        self._signing = threading.Lock()
        self._token, self._steady_until = "", 0.0

    def token(self) -> str:
        """Return a valid token.

        Raises:
            SigningError: the program that signs fails, or a new enrolment needs another agent.
        """
        with self._signing:
            self._follow_enrolment()
            if not self._token or self._clock.steady() > self._steady_until:
                self._token = self._sign()
                self._steady_until = self._clock.steady() + VALID_SECONDS - _RENEW_SECONDS
            return self._token

    @property
    def has_new_enrolment(self) -> bool:
        """Whether the reporter was enrolled again since the last token."""
        return self._state.version(IDENTITY) != self._file

    def discard(self) -> bool:
        """Sign another token next time: the server refused this one. Return whether its key will be new."""
        with self._signing:
            self._token = ""
            return self.has_new_enrolment

    def _follow_enrolment(self) -> None:
        file = self._state.version(IDENTITY)
        if file == self._file:
            return
        try:
            enrolled = identities.load(self._state)
        except StateError:  # removed, or damaged: the present key may still do
            return
        before = self._identity
        key = {"key_file": enrolled.key_file, "key_fingerprint": enrolled.key_fingerprint}
        if replace(before, **key, exchange_seconds=enrolled.exchange_seconds) != enrolled:
            raise SigningUnavailable(
                f"this reporter was enrolled again, as {enrolled.reporter} at {enrolled.url}, with other"
                " options: restart the agent"
            )
        self._identity, self._file, self._token = enrolled, file, ""

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
        key = self._state.path / self._identity.key_file
        return f"{PREFIX}.{text}.{_base64url(self._method.sign(key, signing.TOKEN, text))}"


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
