"""The contract of a signing method, and public keys in DER."""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from probes.grid import Completed
from reporters import process
from reporters.path_chain import unsafe_reason
from reporters.trees import remove_tree

PROGRAM_SECONDS = 30.0
_P256_DER = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")  # before the 65-byte point
_ED25519_DER = bytes.fromhex("302a300506032b6570032100")  # before the 32-byte key
_POINT_BYTES, _ED25519_BYTES = 65, 32


class SigningError(Exception):
    """The base class of the errors of signing."""


class SigningUnavailable(SigningError):
    """The program is missing, or cannot do what is needed here."""


class MalformedKey(SigningError):
    """A public key is malformed, or of another type than expected."""


class InvalidSignature(SigningError):
    """The signature is not that of the key, the purpose and the document."""


class SigningMethod(Protocol):
    """Signs and verifies. The signed text is the purpose, a line feed and the document.

    The methods raise SigningUnavailable if the program is missing, fails or does not end in time.
    """

    def make_key(self, private_key: Path) -> None:
        """Make a key pair; write the private key to the new file *private_key*, readable by its owner."""

    def public_key(self, private_key: Path) -> str:
        """Return the public key of *private_key* as the method writes it."""

    def fingerprint(self, public_key: str) -> str:
        """Return the SHA-256, in hex, of the SubjectPublicKeyInfo of *public_key* in DER.

        Raises:
            MalformedKey: *public_key* is malformed, or of a type that the protocol does not have.
        """

    def sign(self, private_key: Path, purpose: str, document: str) -> str:
        """Return the signature of *document* for *purpose*, as text."""

    def verify(self, public_key: str, purpose: str, document: str, signature: str) -> None:
        """Return if *signature* is that of *document* for *purpose* by *public_key*.

        Raises:
            InvalidSignature: it is another signature, or none.
        """


def signed_text(purpose: str, document: str) -> str:
    """Return the text to sign. Raises InvalidSignature if *document* has no form in UTF-8."""
    try:
        document.encode()
    except UnicodeEncodeError as error:
        raise InvalidSignature(f"the document is not UTF-8: {error.reason}") from None
    return f"{purpose}\n{document}"


@contextlib.contextmanager
def work_directory() -> Iterator[Path]:
    """Yield a new directory for the files of a program, in that of TMPDIR, which is removed afterwards.

    Raises:
        SigningUnavailable: the directory, or a file in it, cannot be written or read: the disk may be full.
    """
    try:
        directory = _new_directory()
        try:
            yield directory
        finally:
            remove_tree(directory)
    except OSError as error:
        where = error.filename or "the directory of temporary files"
        raise SigningUnavailable(
            f"cannot use {where}: {error.strerror}; free space there, or name another directory by TMPDIR"
        ) from None


def _new_directory() -> Path:
    """Return a new directory that only this user can read; ``tempfile`` would load half a megabyte more."""
    places = (os.environ.get("TMPDIR"), "/tmp", "/var/tmp")  # noqa: S108  # mkdir takes no existing name
    *others, last = (Path(place, f"gridcast-{uuid.uuid4().hex}") for place in places if place)
    for directory in others:
        with contextlib.suppress(OSError):
            return _made(directory)
    return _made(last)


def _made(directory: Path) -> Path:
    if reason := unsafe_reason(directory.absolute()):
        raise PermissionError(errno.EPERM, reason, str(directory.parent))
    directory.mkdir(mode=0o700)
    return directory


def run(argv: Sequence[str], text: str = "") -> Completed:
    """Run *argv* with *text* as its input; return the result, whatever the exit status.

    Raises:
        SigningUnavailable: the program is missing or did not end in time.
    """
    try:
        return process.run(argv, input=text, timeout_seconds=PROGRAM_SECONDS, guarded=False)
    except process.ProcessError as error:
        raise SigningUnavailable(str(error)) from None


def check(argv: Sequence[str], text: str = "") -> str:
    """Return the output of *argv*, as ``run`` does. Raises SigningUnavailable also if the program fails."""
    done = run(argv, text)
    if done.returncode != 0:
        raise SigningUnavailable(
            f"{' '.join(argv[:3])} failed with status {done.returncode}: {complaint(done)}"
        )
    return done.stdout


def complaint(done: Completed) -> str:
    """Return the last line that the program printed."""
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1].strip() if lines else "no message"


def write_private(file: Path, text: str) -> None:
    """Write *text* to the new *file*, readable by its owner only.

    Raises:
        SigningUnavailable: the file exists or cannot be written.
    """
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123  # of a descriptor
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise SigningUnavailable(f"cannot write the private key to {file}: {error.strerror}") from None


def unbase64(text: str) -> bytes:
    """Decode base64, with line breaks. Raises MalformedKey for any other text."""
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedKey("expected base64") from None


def p256_fingerprint(subject_public_key_info: bytes) -> str:
    """Return the fingerprint of a P-256 key in DER. Raises MalformedKey for another type of key."""
    if not subject_public_key_info.startswith(_P256_DER) or len(subject_public_key_info) != (
        len(_P256_DER) + _POINT_BYTES
    ):
        raise MalformedKey("expected a public key of the curve P-256")
    return hashlib.sha256(subject_public_key_info).hexdigest()


def p256_of_point(point: bytes) -> bytes:
    """Return the SubjectPublicKeyInfo of the P-256 key with the uncompressed *point*."""
    return _P256_DER + point


def ed25519_fingerprint(key: bytes) -> str:
    """Return the fingerprint of an Ed25519 key. Raises MalformedKey for another length."""
    if len(key) != _ED25519_BYTES:
        raise MalformedKey(f"expected {_ED25519_BYTES} bytes of Ed25519, got {len(key)}")
    return hashlib.sha256(_ED25519_DER + key).hexdigest()
