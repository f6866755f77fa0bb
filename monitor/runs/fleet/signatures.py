"""Signatures between the server and remote reporters (docs/reporter-protocol.md).

The server has one ECDSA P-256 key, derived from ``SECRET_KEY``, so that no further secret has to be kept and
backed up. With another ``SECRET_KEY`` every reporter has to enrol again. A signature covers the line PURPOSE
and the document, so a signature for one purpose is worthless for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)
from django.conf import settings

from monitor.runs.fleet import sshsig

OPENSSL, SSH = "openssl", "ssh"
METHODS = (OPENSSL, SSH)
MAX_KEY_CHARACTERS = 1_000
MAX_SIGNATURE_CHARACTERS = sshsig.MAX_CHARACTERS
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_DERIVATION = b"gridcast server key 1"
_SEED_BYTES = 48  # 16 more than the order has: the remainder is uniform

_Public = ec.EllipticCurvePublicKey | Ed25519PublicKey


class Purpose(StrEnum):
    """The purpose of a signature: the first line of the signed text."""

    ENROLMENT = "gridcast enrolment 1"
    TOKEN = "gridcast token 1"  # noqa: S105  # no credential
    ASSIGNMENT = "gridcast assignment 1"
    RECEIPT = "gridcast receipt 1"


class InvalidReporterKey(ValueError):
    """The text is no public key of the method; the message says what is expected."""


class InvalidReporterSignature(ValueError):
    """The signature is malformed, or not one of the key, purpose and document."""


@dataclass(frozen=True)
class PublicKey:
    """The public key of a reporter.

    *text* is the key as the method writes it, without comment; *fingerprint* the SHA-256, in hex, of its
    ``SubjectPublicKeyInfo``.
    """

    method: str
    text: str
    fingerprint: str


def parse_key(method: str, text: str) -> PublicKey:
    """Return the public key that the program of *method* wrote as *text*.

    Raises:
        InvalidReporterKey: *method* is unknown, or *text* is no P-256 key (``openssl``), no Ed25519 key
            (``ssh``).
    """
    key = _load(method, text)
    return PublicKey(method, _written(method, key), _fingerprint(key))


def verify(method: str, key: str, purpose: Purpose, document: bytes, signature: str) -> None:
    """Verify that *signature* is one of *document* for *purpose* by *key*, a key of *method*.

    Raises:
        InvalidReporterSignature: it is not.
        InvalidReporterKey: *key* is no public key of *method*.
    """
    public = _load(method, key)
    message = _message(purpose, document)
    try:
        if len(signature) > MAX_SIGNATURE_CHARACTERS:
            raise ValueError(f"expected at most {MAX_SIGNATURE_CHARACTERS} characters")
        if isinstance(public, Ed25519PublicKey):
            sshsig.verify(public, message, signature)
        else:
            der = base64.b64decode("".join(signature.split()), validate=True)
            public.verify(der, message, ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, binascii.Error, ValueError) as error:
        detail = str(error) or "it is a signature of another key or document"
        raise InvalidReporterSignature(
            f"the signature for the purpose {purpose} is invalid: {detail}"
        ) from None


def sign(method: str, purpose: Purpose, document: bytes) -> str:
    """Return the server's signature of *document* for *purpose*, as the program of *method* verifies it."""
    key, message = _server_key(settings.SECRET_KEY), _message(purpose, document)
    if method == SSH:
        return sshsig.sign(key, message)
    return base64.b64encode(key.sign(message, ec.ECDSA(hashes.SHA256()))).decode()


def server_public_key(method: str) -> str:
    """Return the server's public key as *method* writes it."""
    return _written(method, _server_key(settings.SECRET_KEY).public_key())


def server_fingerprint() -> str:
    """Return the fingerprint of the server's key: SHA-256 of its ``SubjectPublicKeyInfo``, in hex."""
    return _fingerprint(_server_key(settings.SECRET_KEY).public_key())


def _message(purpose: Purpose, document: bytes) -> bytes:
    return purpose.value.encode() + b"\n" + document


@lru_cache(maxsize=4)
def _server_key(secret: str) -> ec.EllipticCurvePrivateKey:
    seed = HKDF(hashes.SHA512(), _SEED_BYTES, salt=None, info=_DERIVATION).derive(secret.encode())
    return ec.derive_private_key(int.from_bytes(seed, "big") % (_P256_ORDER - 1) + 1, ec.SECP256R1())


@lru_cache(maxsize=4096)  # an exchange of each of hundreds of reporters every minute
def _load(method: str, text: str) -> _Public:
    if method not in METHODS:
        raise InvalidReporterKey(f"method: expected one of {', '.join(METHODS)}")
    expected = (
        "a P-256 key in PEM" if method == OPENSSL else "a line with an Ed25519 key, as in id_ed25519.pub"
    )
    load = load_pem_public_key if method == OPENSSL else load_ssh_public_key
    try:
        if len(text) > MAX_KEY_CHARACTERS:
            raise ValueError(f"it has more than {MAX_KEY_CHARACTERS} characters")
        key = load(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InvalidReporterKey(f"public_key: expected {expected}: {error}") from None
    if method == SSH and isinstance(key, Ed25519PublicKey):
        return key
    if (
        method == OPENSSL
        and isinstance(key, ec.EllipticCurvePublicKey)
        and isinstance(key.curve, ec.SECP256R1)
    ):
        return key
    raise InvalidReporterKey(f"public_key: expected {expected}, got a key of another kind")


def _written(method: str, key: _Public) -> str:
    if method == SSH:
        return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def _fingerprint(key: _Public) -> str:
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
