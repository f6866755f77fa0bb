"""The assignment on disk: verified when it arrives and at every start; a version never goes back.

One document is in force; another may wait for the operator's approval. Both are kept with their signatures.
The highest version is kept in a file of its own, so that an older one stays refused when these are damaged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from reporters.fields import Fields, Unfit
from reporters.remote import signing
from reporters.remote.assignment import MAX_BYTES, AssignmentRefused, SiteAssignment, parse
from reporters.remote.identity import ReporterIdentity
from reporters.remote.signing.base import InvalidSignature
from reporters.remote.state_directory import (
    ASSIGNMENT,
    HIGHEST_ASSIGNMENT,
    PENDING_ASSIGNMENT,
    StateDirectory,
    StateError,
)

AUTO, ASK, FROZEN = "auto", "ask", "frozen"


@dataclass(frozen=True)
class DocumentVersion:
    """A version, and the SHA-256 of the document that has it."""

    number: int
    sha256: str


@dataclass(frozen=True)
class SignedAssignment:
    """A document with its valid signature, and what it says."""

    document: str
    signature: str
    assignment: SiteAssignment

    @property
    def version(self) -> DocumentVersion:
        sha256 = hashlib.sha256(self.document.encode(errors="replace")).hexdigest()
        return DocumentVersion(self.assignment.version, sha256)

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
        self._version = self._state.version(ASSIGNMENT)
        return self._read(ASSIGNMENT)

    def current_if_changed(self) -> SignedAssignment | None:
        """Return the assignment in force if its file has changed since the last call, else None.

        The errors are those of ``current``.
        """
        return None if self._state.version(ASSIGNMENT) == self._version else self.current()

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
            StateError: a file cannot be written, or it is not known which versions are older.
        """
        offered = self._verified(envelope)
        current, pending = self._usable(ASSIGNMENT), self._usable(PENDING_ASSIGNMENT)
        for known in self._known(current, pending):
            _check_version(offered.version, known)
        if current is not None and offered.assignment.what_runs() == current.assignment.what_runs():
            return current if offered.document == current.document else self._put_in_force(offered)
        if approval == FROZEN:
            version = offered.assignment.version
            raise AssignmentRefused(f"version {version}: the site's policy accepts no changes (frozen)")
        if approval == ASK:
            if pending is None or pending.document != offered.document:
                self._keep_highest(offered)
                self._state.write(PENDING_ASSIGNMENT, offered.to_bytes())
            return None
        return self._put_in_force(offered)

    def approve(self, shown: SignedAssignment) -> SignedAssignment:
        """Put *shown* in force, which the operator has seen, and return it.

        Raises:
            AssignmentRefused: it no longer waits, or an assignment that is not older is in force.
            StateError: a file cannot be written, or it is not known which versions are older.
        """
        pending, current = self._usable(PENDING_ASSIGNMENT), self._usable(ASSIGNMENT)
        if pending is None or pending.document != shown.document:
            version = shown.assignment.version
            raise AssignmentRefused(
                f"version {version} no longer waits: the server has sent another; run `approve` again"
            )
        for known in self._known(current, None):
            _check_version(shown.version, known)
        return self._put_in_force(shown)

    def _known(
        self, current: SignedAssignment | None, pending: SignedAssignment | None
    ) -> list[DocumentVersion]:
        """Return the versions that no other may precede.

        Raises:
            StateError: the file of the highest version is damaged, and so are the assignments.
        """
        versions = [each.version for each in (pending, current) if each is not None]
        try:
            highest = self._highest()
        except StateError as error:
            if not versions:
                remedy = "remove it to accept whatever version the server sends"
                raise StateError(f"{error}; {remedy}") from None
        else:
            versions += [] if highest is None else [highest]
        return versions

    def _highest(self) -> DocumentVersion | None:
        document = self._state.read_object(HIGHEST_ASSIGNMENT)
        if document is None:
            return None
        try:
            fields = Fields(document)
            return DocumentVersion(
                fields.integer("version", minimum=0), fields.text("sha256", pattern="[0-9a-f]{64}")
            )
        except Unfit as error:
            raise StateError(f"cannot use {self._state.path / HIGHEST_ASSIGNMENT}: {error}") from None

    def _keep_highest(self, accepted: SignedAssignment) -> None:
        """Write the version before the assignment that has it."""
        version = accepted.version
        self._state.write_object(HIGHEST_ASSIGNMENT, {"version": version.number, "sha256": version.sha256})

    def _put_in_force(self, offered: SignedAssignment) -> SignedAssignment:
        self._keep_highest(offered)
        self._state.write(ASSIGNMENT, offered.to_bytes())
        self._state.remove(PENDING_ASSIGNMENT)
        self._version = self._state.version(ASSIGNMENT)
        return offered

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


def _check_version(offered: DocumentVersion, known: DocumentVersion) -> None:
    if offered.number < known.number:
        raise AssignmentRefused(
            f"version {offered.number} is older than version {known.number}, which is here"
        )
    if offered.number == known.number and offered != known:
        raise AssignmentRefused(f"version {offered.number} is here with other content")


def _texts(envelope: object) -> tuple[str, str]:
    values = envelope if isinstance(envelope, Mapping) else {}
    document, signature = values.get("document"), values.get("signature")
    if not isinstance(document, str) or not isinstance(signature, str):
        raise AssignmentRefused("malformed: expected a document with a signature")
    return document, signature
