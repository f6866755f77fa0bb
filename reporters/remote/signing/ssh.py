"""Ed25519 keys and SSHSIG signatures, by ``ssh-keygen`` of OpenSSH 8.1 or newer.

A public key is one line as in an authorized_keys file; that of the server has the type ecdsa-sha2-nistp256.
"""

from __future__ import annotations

import re
from pathlib import Path

from reporters.remote.signing import base

_NAMESPACE = "gridcast"
_SIGNER = "signer"
_LINE = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp256) ([A-Za-z0-9+/=]+)( [ -~]*)?", re.ASCII)
_LENGTH_BYTES = 4


class Method:
    def make_key(self, private_key: Path) -> None:
        if private_key.exists():  # ssh-keygen would ask whether to overwrite it
            raise base.SigningUnavailable(f"cannot write the private key to {private_key}: File exists")
        base.check(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gridcast-reporter", "-f", str(private_key)]
        )
        _public_file(private_key).unlink()  # derived from the private key whenever it is needed

    def public_key(self, private_key: Path) -> str:
        return base.check(["ssh-keygen", "-y", "-f", str(private_key)]).strip()

    def fingerprint(self, public_key: str) -> str:
        kind, fields = _parsed(public_key)
        if kind == "ssh-ed25519" and len(fields) == 1:
            return base.ed25519_fingerprint(fields[0])
        if kind == "ecdsa-sha2-nistp256" and len(fields) == 2 and fields[0] == b"nistp256":
            return base.p256_fingerprint(base.p256_of_point(fields[1]))
        raise base.MalformedKey(f"expected the fields of a key of the type {kind}")

    def sign(self, private_key: Path, purpose: str, document: str) -> str:
        argv = ["ssh-keygen", "-q", "-Y", "sign", "-n", _NAMESPACE, "-f", str(private_key)]
        return base.check(argv, base.signed_text(purpose, document))

    def verify(self, public_key: str, purpose: str, document: str, signature: str) -> None:
        text = base.signed_text(purpose, document)
        kind, _ = _parsed(public_key)
        key = public_key.split()[1]
        with base.work_directory() as directory:
            signers, signature_file = directory / "signers", directory / "signature"
            signers.write_text(f'{_SIGNER} namespaces="{_NAMESPACE}" {kind} {key}\n', encoding="ascii")
            signature_file.write_text(signature, encoding="utf-8", errors="replace")
            argv = ["ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", _SIGNER, "-n", _NAMESPACE]
            done = base.run([*argv, "-s", str(signature_file)], text)
        if done.returncode != 0:
            raise base.InvalidSignature(f"ssh-keygen -Y verify: {base.complaint(done)}")


def _public_file(private_key: Path) -> Path:
    return private_key.with_name(f"{private_key.name}.pub")


def _parsed(public_key: str) -> tuple[str, list[bytes]]:
    """Return the type of *public_key* and the fields after the type in its blob.

    Raises:
        MalformedKey: it is no line with a public key of a type that the protocol has.
    """
    line = _LINE.fullmatch(public_key.strip())
    if line is None:
        raise base.MalformedKey("expected a line with a public key, of ssh-ed25519 or ecdsa-sha2-nistp256")
    rest, fields = base.unbase64(line[2]), []
    while rest:
        length = int.from_bytes(rest[:_LENGTH_BYTES], "big")
        field, rest = rest[_LENGTH_BYTES : _LENGTH_BYTES + length], rest[_LENGTH_BYTES + length :]
        if len(field) != length:
            raise base.MalformedKey("the public key is cut off")
        fields.append(field)
    if not fields or fields[0] != line[1].encode():
        raise base.MalformedKey("the public key is not of the type that its line says")
    return line[1], fields[1:]
