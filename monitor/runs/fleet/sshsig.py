"""The signatures that ``ssh-keygen -Y`` makes and verifies: the format SSHSIG (OpenSSH, PROTOCOL.sshsig).

An armored signature contains the public key, the namespace, the name of a hash function, and a signature over
the hash of the message. Ed25519 keys are verified, ECDSA P-256 keys also sign.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
import textwrap

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MAX_CHARACTERS = 2_000  # of an armored signature; that of an Ed25519 key has 300
NAMESPACE = b"gridcast"
_MAGIC = b"SSHSIG"
_VERSION = 1
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}
_LINE_CHARACTERS = 70
_ED25519, _P256 = b"ssh-ed25519", b"ecdsa-sha2-nistp256"


class MalformedSshSignature(ValueError):
    """The text is no armored SSH signature, or not one of the key, namespace and message."""


def sign(key: ec.EllipticCurvePrivateKey, message: bytes) -> str:
    """Return the armored signature of *message* in the namespace ``gridcast``; *key* is a P-256 key."""
    der = key.sign(_signed(message, b"sha512"), ec.ECDSA(hashes.SHA256()))
    numbers = b"".join(_string(_mpint(number)) for number in decode_dss_signature(der))
    parts = (_key_blob(key.public_key()), NAMESPACE, b"", b"sha512", _string(_P256) + _string(numbers))
    content = _MAGIC + struct.pack(">I", _VERSION) + b"".join(map(_string, parts))
    lines = textwrap.wrap(base64.b64encode(content).decode(), _LINE_CHARACTERS)
    return "\n".join([_BEGIN, *lines, _END, ""])


def verify(key: Ed25519PublicKey, message: bytes, armored: str) -> None:
    """Verify the signature of *message* by *key* in the namespace ``gridcast``.

    Raises:
        MalformedSshSignature: the signature is malformed, or of another key, namespace or message.
    """
    rest = _unarmored(armored)
    if not rest.startswith(_MAGIC + struct.pack(">I", _VERSION)):
        raise MalformedSshSignature("expected an SSH signature of version 1")
    rest = rest[len(_MAGIC) + 4 :]
    blob, rest = _next(rest)
    namespace, rest = _next(rest)
    _reserved, rest = _next(rest)
    algorithm, rest = _next(rest)
    signature, rest = _next(rest)
    kind, numbers = _next(signature)
    raw, after = _next(numbers)
    if rest or after:
        raise MalformedSshSignature("there are bytes after the signature")
    if blob != _key_blob(key) or namespace != NAMESPACE or algorithm not in _HASHES or kind != _ED25519:
        raise MalformedSshSignature("it is a signature of another key, namespace or kind")
    try:
        key.verify(raw, _signed(message, algorithm))
    except InvalidSignature:
        raise MalformedSshSignature("it is a signature of another message") from None


def _signed(message: bytes, algorithm: bytes) -> bytes:
    """Return the bytes that the key signs; the reserved field is empty."""
    return _MAGIC + b"".join(map(_string, (NAMESPACE, b"", algorithm, _HASHES[algorithm](message).digest())))


def _key_blob(key: Ed25519PublicKey | ec.EllipticCurvePublicKey) -> bytes:
    line = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def _unarmored(armored: str) -> bytes:
    lines = armored[:MAX_CHARACTERS].strip().splitlines()
    if len(lines) < 3 or (lines[0], lines[-1]) != (_BEGIN, _END):
        raise MalformedSshSignature(f"expected lines between {_BEGIN} and {_END}")
    try:
        return base64.b64decode("".join(lines[1:-1]), validate=True)
    except (binascii.Error, ValueError):  # ValueError: characters outside of ASCII
        raise MalformedSshSignature("expected base64") from None


def _string(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def _mpint(number: int) -> bytes:
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _next(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of *data* and the rest."""
    if len(data) < 4:
        raise MalformedSshSignature("it ends too early")
    (length,) = struct.unpack_from(">I", data)
    if len(data) < 4 + length:
        raise MalformedSshSignature("it ends too early")
    return data[4 : 4 + length], data[4 + length :]
