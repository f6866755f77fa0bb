"""Enrol a remote reporter: a code for an admin, a key for the reporter, and the end of both.

A code has 60 random bits; only its hash is stored. The last eight characters are the start of the fingerprint
of the server's key: with them the agent recognises the server.

Errors::

    EnrolmentRefused
    |-- InvalidCode         unknown, used, expired or withdrawn; the message does not tell which
    |-- KeyKnown            the key was enrolled before: a revoked key never comes back
    `-- TooManyAttempts     too many invalid codes lately; has the seconds until the next attempt
"""

from __future__ import annotations

import base64
import hashlib
import logging
import secrets
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.core.networks import ip_of, ipv6_network
from monitor.depot.access.audit_trail import note
from monitor.models import EnrolmentAttempt, EnrolmentCode, Reporter, ReporterKey
from monitor.runs.fleet import signatures
from monitor.runs.fleet.signatures import Purpose
from reporters.fields import clean_text

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser

logger = logging.getLogger(__name__)
VALIDITY = timedelta(minutes=15)
RANDOM_CHARACTERS, FINGERPRINT_CHARACTERS = 12, 8
MAX_HOSTNAME_CHARACTERS = 253
ATTEMPT_WINDOW = timedelta(minutes=15)
MAX_ATTEMPTS_PER_ADDRESS = 10
MAX_ATTEMPTS = 1_000
_GROUP_CHARACTERS = 4
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"  # base32
_UNCODED = "there is no valid code like this: it is unknown, was used, or expired. Ask for a new one"


class EnrolmentRefused(Exception):
    """The enrolment is refused; the message says why."""


class InvalidCode(EnrolmentRefused):
    pass


class KeyKnown(EnrolmentRefused):
    pass


class TooManyAttempts(EnrolmentRefused):
    def __init__(self, retry_seconds: int) -> None:
        super().__init__(f"too many invalid codes; try again in {retry_seconds} s")
        self.retry_seconds = retry_seconds


class NotRemote(ValueError):
    """The reporter has no site: it is a Celery worker, which needs no key."""


@dataclass(frozen=True)
class EnrolmentRequest:
    """The request of an agent; *signature* is one of the normalised code by the key *public_key*."""

    code: str
    method: str
    public_key: str
    signature: str
    hostname: str = ""


@transaction.atomic
def create_code(reporter: Reporter, user: AbstractBaseUser | None, now: datetime) -> str:
    """Return a new code with which *reporter* can enrol once, until ``VALIDITY`` after *now*.

    Earlier codes of the reporter become invalid.

    Raises:
        NotRemote: *reporter* has no site.
    """
    if not reporter.is_remote:
        raise NotRemote(f"the reporter {reporter.name} has no site: it is a Celery worker and needs no code")
    _withdraw_codes(reporter, now)
    code = "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_CHARACTERS))
    code += server_mark()
    EnrolmentCode.objects.create(
        reporter=reporter,
        sha256=_digest(code),
        created_at=now,
        created_by=user,  # type: ignore[misc]  # the user model of django.contrib.auth
        expires_at=now + VALIDITY,
    )
    note("reporter", reporter.name, after=f"enrolment code, valid until {now + VALIDITY:%Y-%m-%d %H:%M} UTC")
    starts = range(0, len(code), _GROUP_CHARACTERS)
    return "-".join(code[start : start + _GROUP_CHARACTERS] for start in starts)


def server_mark() -> str:
    """Return the last characters of every code: the start of the server's fingerprint in base32."""
    fingerprint = bytes.fromhex(signatures.server_fingerprint())
    return base64.b32encode(fingerprint).decode()[:FINGERPRINT_CHARACTERS]


def enrol(request: EnrolmentRequest, address: str, now: datetime) -> ReporterKey:
    """Enrol the key of *request*, sent from *address*, as the reporter of its code; revoke the earlier key.

    The same request gets the same answer while the code is valid in time, because the first answer may have
    been lost.

    Raises:
        EnrolmentRefused: as the module describes.
        InvalidReporterKey: the key is no public key of its method.
        InvalidReporterSignature: the signature is not one of the code by this key.
    """
    key = signatures.parse_key(request.method, request.public_key)
    code = request.code.upper().replace("-", "").strip()
    signed = code.encode(errors="replace")  # lone surrogates
    signatures.verify(key.method, key.text, Purpose.ENROLMENT, signed, request.signature)
    client = _network(address)
    _check_attempts(client, now)
    try:
        enrolled = _enrol(code, key, request.hostname, now)
    except InvalidCode:
        EnrolmentAttempt.objects.create(at=now, address=client)
        raise
    logger.info("reporter %s enrolled the key %s", enrolled.reporter.name, enrolled.fingerprint)
    return enrolled


@transaction.atomic
def revoke(reporter: Reporter, by: str, now: datetime) -> int:
    """Revoke the key and the codes of *reporter*; return the number of revoked keys.

    The next request of the agent is refused. *by* is the user.
    """
    _withdraw_codes(reporter, now)
    revoked = _revoke_keys(reporter, by, now)
    note("reporter", reporter.name, before="enrolled" if revoked else None, after="key and codes revoked")
    if revoked:
        logger.info("the key of reporter %s was revoked by %s", reporter.name, by)
    return revoked


@transaction.atomic
def _enrol(code: str, key: signatures.PublicKey, hostname: str, now: datetime) -> ReporterKey:
    # Without the key: a concurrent repetition of the request may enrol one before this gets the lock.
    locked = EnrolmentCode.objects.select_for_update(of=("self",)).select_related("reporter", "created_by")
    stored = locked.filter(sha256=_digest(code), expires_at__gt=now, reporter__site__isnull=False).first()
    if stored is None or not stored.is_permitted():
        raise InvalidCode(_UNCODED)
    if stored.used_at is not None:
        if (
            stored.key is None
            or stored.key.fingerprint != key.fingerprint
            or stored.key.revoked_at is not None
        ):
            raise InvalidCode(_UNCODED)
        return stored.key
    if ReporterKey.objects.filter(fingerprint=key.fingerprint).exists():
        raise KeyKnown("this key was enrolled before; make a new one")
    _revoke_keys(stored.reporter, "a later enrolment", now)
    stored.key = ReporterKey.objects.create(
        reporter=stored.reporter,
        method=key.method,
        public_key=key.text,
        fingerprint=key.fingerprint,
        hostname=clean_text(hostname)[:MAX_HOSTNAME_CHARACTERS],
        enrolled_at=now,
    )
    stored.used_at = now
    stored.save(update_fields=["key", "used_at"])
    return stored.key


def _revoke_keys(reporter: Reporter, by: str, now: datetime) -> int:
    # The lock serialises enrolments of the reporter: it has at most one active key.
    Reporter.objects.select_for_update(no_key=True).get(pk=reporter.pk)
    return ReporterKey.objects.active().filter(reporter=reporter).update(revoked_at=now, revoked_by=by[:150])


def _withdraw_codes(reporter: Reporter, now: datetime) -> None:
    EnrolmentCode.objects.filter(reporter=reporter, expires_at__gt=now).update(expires_at=now)


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()


def _network(address: str) -> str:
    """Return the address of the client for the limit of attempts: an IPv4 address, or an IPv6 network."""
    parsed = ip_of(address)
    return str(ipv6_network(parsed) if isinstance(parsed, IPv6Address) else parsed or "unknown")


def _check_attempts(client: str, now: datetime) -> None:
    """Raise TooManyAttempts if *client*, or all clients together, sent too many invalid codes lately."""
    EnrolmentAttempt.objects.filter(at__lte=now - ATTEMPT_WINDOW).delete()
    for attempts, most in (
        (EnrolmentAttempt.objects.filter(address=client), MAX_ATTEMPTS_PER_ADDRESS),
        (EnrolmentAttempt.objects.all(), MAX_ATTEMPTS),
    ):
        times = list(attempts.order_by("-at").values_list("at", flat=True)[:most])
        if len(times) == most:
            logger.warning("enrolments from %s are refused: too many invalid codes", client)
            raise TooManyAttempts(max(1, round((times[-1] + ATTEMPT_WINDOW - now).total_seconds())))
