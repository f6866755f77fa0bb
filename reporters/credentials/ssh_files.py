"""Parse SSH key files and certificates without the passphrase of the key."""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from dataclasses import dataclass
from datetime import datetime, timezone

from reporters.credentials.lifetime import Lifetime

_OPENSSH = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+)-----END")
_MAGIC = b"openssh-key-v1\0"
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----")
_VALID = re.compile(r"^\s*Valid: (.*)$", re.MULTILINE)
_TIME = re.compile(r"(from|after|before|to) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")


@dataclass(frozen=True)
class KeyFile:
    """The content of a key file.

    Attributes:
        private: whether the file has a private key.
        encrypted: whether a passphrase protects the private key.
        public: the public key, as in the second word of a .pub file; empty if unknown.
    """

    private: bool
    encrypted: bool
    public: str


def parse_key_file(data: bytes) -> KeyFile | None:
    """Parse a private key in OpenSSH or PEM format, or a public key; return None for other data."""
    openssh, pem = _OPENSSH.search(data), _PEM.search(data)
    if openssh:
        return _parse_openssh(openssh[1])
    if pem:
        head = data[pem.start() : pem.start() + 200]
        return KeyFile(private=True, encrypted=b"ENCRYPTED" in head, public="")
    public = parse_public_key(data.decode("utf-8", "replace"))
    return KeyFile(private=False, encrypted=False, public=public) if public else None


def parse_public_key(line: str) -> str:
    """Return the key ``AAAA...`` from a line ``ssh-ed25519 AAAA... comment``; empty for other lines."""
    words = line.split()
    return words[1] if len(words) > 1 and words[1].startswith("AAAA") else ""


def parse_validity(text: str) -> list[Lifetime]:
    """Return the certificates' periods of validity from ``ssh-keygen -L``, which must run with TZ=UTC."""
    lifetimes = []
    for valid in _VALID.findall(text):
        times = {word: _seconds(time) for word, time in _TIME.findall(valid)}
        begins = times.get("from", times.get("after", -math.inf))
        lifetimes.append(Lifetime(begins, times.get("to", times.get("before", math.inf))))
    return lifetimes


def _parse_openssh(encoded: bytes) -> KeyFile | None:
    """Parse a private key in OpenSSH's format (PROTOCOL.key); None if it is invalid.

    The format has these parts: magic, cipher, key derivation, options of the derivation, number of keys,
    public key, secrets.
    """
    try:
        data = base64.b64decode(encoded)
        if not data.startswith(_MAGIC):
            return None
        cipher, rest = _string(data[len(_MAGIC) :])
        for _ in ("kdf", "its options"):
            _, rest = _string(rest)
        public, _ = _string(rest[4:])
    except (binascii.Error, struct.error):
        return None
    return KeyFile(True, cipher != b"none", base64.b64encode(public).decode())


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return a string of SSH's wire format (RFC 4251, section 5) and the data after it."""
    (size,) = struct.unpack(">I", data[:4])
    return data[4 : 4 + size], data[4 + size :]


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).replace(tzinfo=timezone.utc).timestamp()
