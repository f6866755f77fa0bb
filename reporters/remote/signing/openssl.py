"""ECDSA with P-256 and SHA-256, by ``openssl``. Keys are PEM, signatures DER in base64."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from reporters.remote.signing import base

_PEM = re.compile(
    r"\s*-----BEGIN PUBLIC KEY-----\s+([A-Za-z0-9+/=\s]+?)-----END PUBLIC KEY-----\s*", re.ASCII
)
_PRIVATE_BEGINS = "-----BEGIN EC PRIVATE KEY-----"


class Method:
    def make_key(self, private_key: Path) -> None:
        key = base.check(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"])
        if not key.startswith(_PRIVATE_BEGINS):
            raise base.SigningUnavailable("openssl ecparam printed no EC private key")
        base.write_private(private_key, key)

    def public_key(self, private_key: Path) -> str:
        return base.check(["openssl", "ec", "-in", str(private_key), "-pubout"])

    def fingerprint(self, public_key: str) -> str:
        pem = _PEM.fullmatch(public_key)
        if pem is None:
            raise base.MalformedKey("expected a public key in PEM")
        return base.p256_fingerprint(base.unbase64(pem[1]))

    def sign(self, private_key: Path, purpose: str, document: str) -> str:
        with base.work_directory() as directory:
            signature = directory / "signature"
            argv = ["openssl", "dgst", "-sha256", "-sign", str(private_key), "-out", str(signature)]
            base.check(argv, base.signed_text(purpose, document))
            return base64.b64encode(signature.read_bytes()).decode()

    def verify(self, public_key: str, purpose: str, document: str, signature: str) -> None:
        text = base.signed_text(purpose, document)
        try:
            der = base.unbase64(signature)
        except base.MalformedKey as error:
            raise base.InvalidSignature(str(error)) from None
        with base.work_directory() as directory:
            key_file, signature_file = directory / "key", directory / "signature"
            key_file.write_text(public_key, encoding="utf-8")
            signature_file.write_bytes(der)
            argv = ["openssl", "dgst", "-sha256", "-verify", str(key_file)]
            done = base.run([*argv, "-signature", str(signature_file)], text)
        if done.returncode != 0:
            raise base.InvalidSignature(f"openssl dgst -verify: {base.complaint(done)}")
