"""Builders of remote reporters as the depot has them: rows, without an agent."""

from __future__ import annotations

import hashlib
import uuid
from datetime import datetime, timedelta
from typing import Any

from monitor.models import Chain, ChainRecord, Reporter, ReporterKey, ReporterStatus, Site
from monitor.models.chain import Disposition

ARCHIVE = "ab12cd34" * 8


def remote(name: str, *, site: str = "", **fields: Any) -> Reporter:
    """Create a remote reporter at *site*, by default at a site of its own name; it has not enrolled."""
    home, _ = Site.objects.get_or_create(name=site or name)
    return Reporter.objects.create(name=name, site=home, **fields)


def enrolled(name: str, at: datetime, **fields: Any) -> Reporter:
    """Create a remote reporter with a key that was enrolled at *at*."""
    reporter = remote(name, **fields)
    key(reporter, at)
    return reporter


def key(reporter: Reporter, at: datetime, **fields: Any) -> ReporterKey:
    count = reporter.keys.count()
    fingerprint = hashlib.sha256(f"{reporter.name} {count}".encode()).hexdigest()
    values = {"method": "openssl", "public_key": "PEM", "hostname": f"login.{reporter.name}.example.org"}
    return ReporterKey.objects.create(
        reporter=reporter, fingerprint=fingerprint, enrolled_at=at, **{**values, **fields}
    )


def status(reporter: Reporter, seen_at: datetime, **fields: Any) -> ReporterStatus:
    """Create the status of a reporter that is well, with the changes *fields*."""
    well = {
        "started_at": seen_at - timedelta(hours=7),
        "hostname": f"login.{reporter.name}.example.org",
        "archive_sha256": ARCHIVE,
        "version": "0.1.0",
        "python": "3.9.18",
        "clock_offset_seconds": 0.012,
        "clock_bound_seconds": 0.034,
    }
    return ReporterStatus.objects.create(reporter=reporter, seen_at=seen_at, **{**well, **fields})


def chain(reporter: Reporter, at: datetime, *, declared: int = 0) -> Chain:
    return Chain.objects.create(
        reporter=reporter, uuid=uuid.uuid4(), first_seen_at=at, declared_at=at, declared_next=declared
    )


def record(of: Chain, sequence: int, at: datetime, **fields: Any) -> ChainRecord:
    values = {"kind": "report", "hash": bytes(32), "disposition": Disposition.STORED}
    return ChainRecord.objects.create(chain=of, sequence=sequence, received_at=at, **{**values, **fields})
