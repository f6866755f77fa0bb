"""Accept, edit and withdraw signatures of one's own; every change is recorded.

Errors::

    SignatureError
        InvalidSignatureValues   a value is not allowed                   permanent
        ConflictingSignature     the name or a pattern is in use          permanent
        OutdatedSignature        it was changed meanwhile, or withdrawn   again, after another look
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import transaction

from monitor.analysis.signatures.active import active_signatures, store
from monitor.analysis.signatures.loading import SignatureEntry, SignatureFile
from monitor.analysis.signatures.shipped import shipped_names
from monitor.analysis.signatures.signature import Signature
from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.core.yamlfile.validation import faults
from monitor.depot.access.audit_trail import note
from monitor.models import OwnSignature, SignatureChange
from monitor.models.failure_signature import Origin
from monitor.models.own_signature import SignatureAction

Values = Mapping[str, Any]  # of a signature, by key of a file of signatures


class SignatureError(ValueError):
    """A signature cannot be written."""


class InvalidSignatureValues(SignatureError):
    """Values are not allowed; *problems* are messages by key, with the key "name" for the name."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{key}: {message}" for key, message in problems.items()))


class ConflictingSignature(SignatureError):
    """The name or a pattern belongs to another signature."""


class OutdatedSignature(SignatureError):
    """The signature is not the one that the user saw."""


def checked(name: str, values: Values) -> Signature:
    """Return the signature *name* with *values*.

    Raises:
        InvalidSignatureValues: a value or the name is not allowed.
    """
    problems: dict[str, list[str]] = defaultdict(list)
    for path, message in faults(SignatureFile, {name: values}):
        key = str(path[1]) if len(path) > 1 else "name"
        where = f"number {path[2] + 1}: " if len(path) > 2 and isinstance(path[2], int) else ""
        problems[key].append(where + message)
    if problems:
        raise InvalidSignatureValues({key: "; ".join(found) for key, found in problems.items()})
    return Signature.of(name, values)


def accept(name: str, values: Values, user: str, now: datetime) -> OwnSignature:
    """Add a signature; of two users who accept the same at once, the second one gets an error.

    Raises:
        InvalidSignatureValues: a value or the name is not allowed.
        ConflictingSignature: the name, or one of the patterns, is in use.
    """
    signature = checked(name, values)
    with _locked():
        if name in shipped_names():
            raise ConflictingSignature(f"gridcast ships a signature {name}; choose another name")
        existing = OwnSignature.objects.filter(name=name).first()
        if existing is not None:
            raise ConflictingSignature(
                f"there is a signature {name} since {existing.changed_at:%Y-%m-%d %H:%M} UTC,"
                f" by {existing.changed_by or 'a grid file'}; choose another name"
            )
        _require_new_patterns(signature)
        row = OwnSignature(name=name, origin=Origin.PAGE, changed_by=user, **_columns(values))
        row.save()
        _record(name, user, now, None, entry_of(row))
        note("signature", name, after=entry_of(row))
    return row


def edit(name: str, values: Values, version: int, user: str, now: datetime) -> OwnSignature:
    """Replace the values of the signature *name*, of which the user has seen *version*.

    Raises:
        InvalidSignatureValues: a value is not allowed.
        ConflictingSignature: one of the patterns belongs to another own signature.
        OutdatedSignature: it was changed meanwhile, or withdrawn.
    """
    signature = checked(name, values)
    with _locked():
        row = _current(name, version)
        _require_new_patterns(signature)
        before = entry_of(row)
        for column, value in _columns(values).items():
            setattr(row, column, value)
        row.origin, row.changed_by, row.version = Origin.PAGE, user, row.version + 1
        row.save()
        _record(name, user, now, before, entry_of(row))
        note("signature", name, before=before, after=entry_of(row))
    return row


def withdraw(name: str, version: int, user: str, now: datetime) -> None:
    """Remove the signature *name*, of which the user has seen *version*; its runs are judged again.

    Raises:
        OutdatedSignature: it was changed meanwhile, or withdrawn.
    """
    with _locked():
        row = _current(name, version)
        before = entry_of(row)
        row.delete()
        _record(name, user, now, before, None)
        note("signature", name, before=before)


def record_grid_file(name: str, before: Values | None, after: Values | None, now: datetime) -> None:
    """Record that a grid file has changed the row *name*, in the transaction that did."""
    if before is not None and after is not None:
        row = OwnSignature.objects.get(name=name)
        row.origin, row.changed_by, row.version = Origin.GRID_FILE, "", row.version + 1
        row.save()
    _record(name, "", now, before, after)


def entry_of(row: OwnSignature) -> dict[str, Any]:
    """Return the values of *row* as in a file of signatures, without defaults."""
    values = {key: getattr(row, key) for key in SignatureEntry.model_fields}
    defaults = {key: field.default for key, field in SignatureEntry.model_fields.items()}
    return {key: value for key, value in values.items() if value != defaults[key]}


def _columns(values: Values) -> dict[str, Any]:
    """Return the columns of the row with *values*, which are valid; missing ones have their defaults."""
    return SignatureEntry.model_validate(values).model_dump(mode="json")


def _require_new_patterns(signature: Signature) -> None:
    for other in OwnSignature.objects.exclude(name=signature.name):
        if same := set(signature.patterns) & set(other.patterns):
            raise ConflictingSignature(f"the signature {other.name} has the pattern {min(same)}")


def _current(name: str, version: int) -> OwnSignature:
    row = OwnSignature.objects.filter(name=name).first()
    if row is None:
        raise OutdatedSignature(f"the signature {name} is withdrawn")
    if row.version != version:
        raise OutdatedSignature(
            f"the signature {name} was changed at {row.changed_at:%Y-%m-%d %H:%M:%S} UTC"
            f" by {row.changed_by or 'a grid file'}; look at it again"
        )
    return row


@contextmanager
def _locked() -> Iterator[None]:
    """Open a transaction that excludes other changes of signatures, also by grid files.

    At its end, the rows that runs refer to agree with the signatures.
    """
    with transaction.atomic():
        lock_until_commit(AdvisoryLock.GRID_FILE)
        yield
        store(active_signatures())


def _record(name: str, user: str, now: datetime, before: Values | None, after: Values | None) -> None:
    action = SignatureAction.CHANGED
    if before is None:
        action = SignatureAction.ADDED
    elif after is None:
        action = SignatureAction.WITHDRAWN
    SignatureChange.objects.create(
        signature=name, action=action, at=now, user=user, before=before, after=after
    )
