"""The assignment on disk: verified when it arrives and at every start; a version never goes back.

One document is in force; another may wait for the operator's approval. Both are kept with their signatures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from reporters.remote import signing
from reporters.remote.assignment import MAX_BYTES, AssignmentRefused, SiteAssignment, parse
from reporters.remote.identity import ReporterIdentity
from reporters.remote.signing.base import InvalidSignature
from reporters.remote.state_directory import ASSIGNMENT, PENDING_ASSIGNMENT, StateDirectory, StateError

AUTO, ASK, FROZEN = "auto", "ask", "frozen"


@dataclass(frozen=True)
class SignedAssignment:
    """A document with its valid signature, and what it says."""

    document: str
    signature: str
    assignment: SiteAssignment

    def to_bytes(self) -> bytes:
        return json.dumps({"document": self.document, "signature": self.signature}).encode()


class AssignmentStore:
    """The assignments of the reporter *identity* in *state*."""

    def __init__(self, state: StateDirectory, identity: ReporterIdentity) -> None:
        self._state, self._identity = state, identity
        self._method = signing.load(identity.method)
        self._version: tuple[int, ...] = ()  # of the file of the assignment in force, as last seen

    def current(self) -> SignedAssignment | None:
        """Return the assignment in force, or None if there is none.

        Raises:
            AssignmentRefused: the file is damaged, or its signature is not the server's.
            StateError: the file cannot be read.
        """
        self._version = self._file_version()
        return self._read(ASSIGNMENT)

    def current_if_changed(self) -> SignedAssignment | None:
        """Return the assignment in force if its file has changed since the last call, else None.

        The errors are those of ``current``.
        """
        return None if self._file_version() == self._version else self.current()

    @property
    def has_pending(self) -> bool:
        """Whether a file waits for approval; its signature is not verified."""
        return (self._state.path / PENDING_ASSIGNMENT).exists()

    def pending(self) -> SignedAssignment | None:
        """Return the assignment that waits for approval, or None; the errors are those of ``current``."""
        return self._read(PENDING_ASSIGNMENT)

    def offer(self, envelope: object, approval: str) -> SignedAssignment | None:
        """Verify a document that the server sent; return it if it is in force now.

        With the *approval* ``ask`` a change of what runs waits, and the result is None.

        Raises:
            AssignmentRefused: the document is not accepted; the message says why.
            SigningError: the signature cannot be verified now.
            StateError: a file cannot be written.
        """
        offered = self._verified(envelope)
        current, pending = self._usable(ASSIGNMENT), self._usable(PENDING_ASSIGNMENT)
        for known in (pending, current):
            if known is not None:
                _check_version(offered, known)
        if current is not None and offered.assignment.what_runs() == current.assignment.what_runs():
            return current if offered.document == current.document else self._put_in_force(offered)
        if approval == FROZEN:
            version = offered.assignment.version
            raise AssignmentRefused(f"version {version}: the site's policy accepts no changes (frozen)")
        if approval == ASK:
            if pending is None or pending.document != offered.document:
                self._state.write(PENDING_ASSIGNMENT, offered.to_bytes())
            return None
        return self._put_in_force(offered)

    def approve(self, shown: SignedAssignment) -> SignedAssignment:
        """Put *shown* in force, which the operator has seen, and return it.

        Raises:
            AssignmentRefused: it no longer waits, or an assignment that is not older is in force.
            StateError: a file cannot be written.
        """
        pending, current = self._usable(PENDING_ASSIGNMENT), self._usable(ASSIGNMENT)
        if pending is None or pending.document != shown.document:
            version = shown.assignment.version
            raise AssignmentRefused(
                f"version {version} no longer waits: the server has sent another; run `approve` again"
            )
        if current is not None:
            _check_version(shown, current)
        return self._put_in_force(shown)

    def _put_in_force(self, offered: SignedAssignment) -> SignedAssignment:
        self._state.write(ASSIGNMENT, offered.to_bytes())
        self._state.remove(PENDING_ASSIGNMENT)
        self._version = self._file_version()
        return offered

    def _file_version(self) -> tuple[int, ...]:
        try:
            status = (self._state.path / ASSIGNMENT).stat()
        except OSError:
            return ()
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def _read(self, name: str) -> SignedAssignment | None:
        envelope = self._state.read_object(name)
        return None if envelope is None else self._verified(envelope)

    def _usable(self, name: str) -> SignedAssignment | None:
        """Return the assignment in the file *name*, or None if there is none or it cannot be used."""
        try:
            return self._read(name)
        except (AssignmentRefused, StateError):
            return None

    def _verified(self, envelope: object) -> SignedAssignment:
        document, signature = _texts(envelope)
        if len(document) > MAX_BYTES:
            raise AssignmentRefused(f"too large: expected at most {MAX_BYTES} bytes")
        try:
            self._method.verify(self._identity.server_key, signing.ASSIGNMENT, document, signature)
        except InvalidSignature as error:
            raise AssignmentRefused(f"its signature is not the server's: {error}") from None
        return SignedAssignment(document, signature, parse(document, self._identity.reporter))


def _check_version(offered: SignedAssignment, known: SignedAssignment) -> None:
    new, old = offered.assignment.version, known.assignment.version
    if new < old:
        raise AssignmentRefused(f"version {new} is older than version {old}, which is here")
    if new == old and offered.document != known.document:
        raise AssignmentRefused(f"version {new} is here with other content")


def _texts(envelope: object) -> tuple[str, str]:
    values = envelope if isinstance(envelope, Mapping) else {}
    document, signature = values.get("document"), values.get("signature")
    if not isinstance(document, str) or not isinstance(signature, str):
        raise AssignmentRefused("malformed: expected a document with a signature")
    return document, signature
