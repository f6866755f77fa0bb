"""Keys of a site, made and used with the programs that sites have: ``openssl`` and ``ssh-keygen``."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from monitor.runs.fleet.signatures import METHODS, OPENSSL, Purpose, parse_key, server_fingerprint


@dataclass(frozen=True)
class SiteKey:
    """A private key in *file* and the public key as the method writes it."""

    method: str
    file: Path
    public: str

    @property
    def fingerprint(self) -> str:
        return parse_key(self.method, self.public).fingerprint

    def sign(self, purpose: str, document: bytes) -> str:
        message = self.file.with_suffix(".message")
        message.write_bytes(purpose.encode() + b"\n" + document)
        if self.method == OPENSSL:
            signing = ["openssl", "dgst", "-sha256", "-sign", str(self.file), str(message)]
            return base64.b64encode(program(signing)).decode()
        signature = message.with_suffix(".message.sig")
        signature.unlink(missing_ok=True)
        program(["ssh-keygen", "-q", "-Y", "sign", "-f", str(self.file), "-n", "gridcast", str(message)])
        return signature.read_text()

    def token(self, reporter: str, at: float, /, **changes: object) -> str:
        """Return a token of *reporter* for ten minutes, with *changes* to its payload."""
        issued = int(at)
        fields = {"reporter": reporter, "key": self.fingerprint, "server": server_fingerprint()}
        payload = {**fields, "issued_at": issued, "expires_at": issued + 600, **changes}
        text = url64(json.dumps(payload).encode())
        return f"gcrep.{text}.{url64(self.sign(Purpose.TOKEN, text.encode()).encode())}"


def url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def program(argv: list[str], stdin: bytes = b"") -> bytes:
    return subprocess.run(argv, input=stdin, check=True, capture_output=True).stdout


def site_key(directory: Path, method: str, name: str = "key") -> SiteKey:
    """Make a key pair in *directory* with the program of *method*."""
    assert method in METHODS
    file = directory / f"{method}-{name}"
    if method == OPENSSL:
        curve = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
        program(["openssl", "genpkey", *curve, "-out", str(file)])
        public = program(["openssl", "pkey", "-in", str(file), "-pubout"]).decode()
    else:
        program(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "<script>", "-f", str(file)])
        public = file.with_suffix(".pub").read_text()
    return SiteKey(method, file, public)


def is_verified(
    method: str, server_key: str, purpose: str, document: bytes, signature: str, at: Path
) -> bool:
    """Return whether the program of *method* accepts the server's *signature*; *at* is an empty directory."""
    (at / "key").write_text(server_key if method == OPENSSL else f"gridcast {server_key}\n")
    message = purpose.encode() + b"\n" + document
    if method == OPENSSL:
        (at / "signature").write_bytes(base64.b64decode(signature))
        verifying = [
            "openssl",
            "dgst",
            "-sha256",
            "-verify",
            str(at / "key"),
            "-signature",
            str(at / "signature"),
        ]
    else:
        (at / "signature").write_text(signature)
        verifying = ["ssh-keygen", "-Y", "verify", "-f", str(at / "key"), "-I", "gridcast", "-n", "gridcast"]
        verifying += ["-s", str(at / "signature")]
    return subprocess.run(verifying, input=message, capture_output=True, check=False).returncode == 0
