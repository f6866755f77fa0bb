"""``manage.py ledger audit``: compare the ledger with the schedules."""

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
    help = "Compare the ledger with the schedules: every slot must have exactly one run, in time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["audit"])
        parser.add_argument("--days", type=float, default=31.0, help="days to look back (31)")

    def handle(self, *, days: float, **_: Any) -> None:
        if not 0 < days <= 36_500:
            raise CommandError(f"--days: expected more than 0 and at most 36500, got {days:g}")
        now = timezone.now()
        since = now - timedelta(days=days)
        result = audit(since, now)
        for finding in result.findings[:SHOWN]:
            self.stdout.write(f"{finding.series} at {finding.slot:%Y-%m-%d %H:%M:%S} {finding.what}")
        if len(result.findings) > SHOWN:
            self.stdout.write(f"... and {len(result.findings) - SHOWN} more")
        self.stdout.write(
            f"{result.slots} slots of {result.series} series in {days:g} days: "
            f"{len(result.missing)} missing, {len(result.doubled)} doubled, {len(result.overdue)} overdue"
        )
        if result.findings:
            raise CommandError("the ledger differs from the schedules")
