"""``manage.py ledger audit``: hold the expectation ledger against the schedules."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.ledger.audit import audit

if TYPE_CHECKING:
    from argparse import ArgumentParser

SHOWN = 20


class Command(BaseCommand):
    help = "Hold the ledger against the schedules: every slot must have exactly one run, in time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["audit"])
        parser.add_argument("--days", type=float, default=31.0, help="how far to look back (31)")

    def handle(self, *, days: float, **_: Any) -> None:
        if not 0 < days <= 36_500:
            raise CommandError(f"--days: expected more than 0 and at most 36500, got {days:g}")
        now = timezone.now()
        since = now - timedelta(days=days)
        found = audit(since, now)
        for finding in found.findings[:SHOWN]:
            self.stdout.write(f"{finding.series} at {finding.slot:%Y-%m-%d %H:%M:%S} {finding.what}")
        if len(found.findings) > SHOWN:
            self.stdout.write(f"... and {len(found.findings) - SHOWN} more")
        self.stdout.write(
            f"{found.slots} slots of {found.series} series in {days:g} days: {len(found.missing)} missing, "
            f"{len(found.doubled)} doubled, {len(found.overdue)} overdue"
        )
        if found.findings:
            raise CommandError("the ledger and the schedules disagree")
