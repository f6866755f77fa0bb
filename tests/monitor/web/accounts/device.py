"""A device with passkeys in software: it signs what it is told to, also what no browser would send."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData

if TYPE_CHECKING:
    from django.test import Client

LOCAL = "http://localhost"
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass
class Device:
    """One passkey. *counter* is that of its last signature; zero stays zero."""

    host: str = "localhost"
    origin: str = LOCAL
    counter: int = 0
    is_verified: bool = True
    handle: str = ""
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def register(self, options: dict[str, Any], *, rk: bool | None = True, **client_data: Any) -> str:
        """Answer *options* as a browser does that has made this passkey."""
        self.handle = options["publicKey"]["user"]["id"]
        public_key = ES256.from_cryptography_key(self.key.public_key())
        attested = AttestedCredentialData.create(bytes(16), self.credential_id, public_key)
        data = AuthenticatorData.create(self._host_digest(), self._flags(ATTESTED), self.counter, attested)
        attestation = AttestationObject.create("none", data, {})
        signed = self._client_data("webauthn.create", options, client_data)
        answer = self._answer(clientDataJSON=signed, attestationObject=attestation)
        results = {} if rk is None else {"credProps": {"rk": rk}}
        return json.dumps({**answer, "clientExtensionResults": results})

    def authenticate(self, options: dict[str, Any], *, counter: int | None = None, **client_data: Any) -> str:
        """Answer *options* as a browser does that uses this passkey, which counts *counter*, or one more."""
        self.counter = self.counter + (self.counter > 0) if counter is None else counter
        data = AuthenticatorData.create(self._host_digest(), self._flags(), self.counter)
        signed = self._client_data("webauthn.get", options, client_data)
        signature = self.key.sign(data + sha256(signed).digest(), ec.ECDSA(SHA256()))
        answer = self._answer(clientDataJSON=signed, authenticatorData=data, signature=signature)
        if self.handle:
            answer["response"]["userHandle"] = self.handle
        return json.dumps(answer)

    def _host_digest(self) -> bytes:
        return sha256(self.host.encode()).digest()

    def _flags(self, more: int = 0) -> AuthenticatorData.FLAG:
        return AuthenticatorData.FLAG(PRESENT | (VERIFIED if self.is_verified else 0) | more)

    def _client_data(self, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> bytes:
        challenge = options["publicKey"]["challenge"]
        members = {"type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": False}
        return json.dumps({**members, **changes}).encode()

    def _answer(self, **response: bytes) -> dict[str, Any]:
        name = websafe_encode(self.credential_id)
        members = {key: websafe_encode(value) for key, value in response.items()}
        return {"id": name, "rawId": name, "type": "public-key", "response": members}


def options_of(browser: Client, path: str) -> dict[str, Any]:
    """Open the page *path*; return the options of its button for passkeys."""
    text = browser.get(path).content.decode()
    script = text.partition('<script id="passkey-options" type="application/json">')[2]
    [options] = json.loads(script.partition("</script>")[0]).values()
    return dict(options)


def login_options(browser: Client) -> dict[str, Any]:
    answer = browser.get("/login/passkey/", headers={"Accept": "application/json"}).json()
    return dict(answer["request_options"])
