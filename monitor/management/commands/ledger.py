"""``manage.py ledger audit``: compare the ledger with schedules, or the depot with a reporter's chains."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.models import Reporter
from monitor.runs.ingest.audit_chains import audit_chains
from monitor.runs.ledger.audit import audit

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Compare the ledger with the schedules: every slot must have exactly one run, in time. With"
        " --reporter, compare the depot with the hash chains of the reporter: every record must be there,"
        " once, unaltered."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["audit"])
        parser.add_argument("--days", type=float, default=31.0, help="days to look back (31)")
        parser.add_argument("--reporter", help="audit all records of this reporter instead of the schedules")

    def handle(self, *, days: float, reporter: str | None, **_: Any) -> None:
        if reporter is None:
            self._audit_slots(days)
        else:
            self._audit_chains(reporter)

    def _audit_slots(self, days: float) -> None:
        if not 0 < days <= 36_500:
            raise CommandError(f"--days: expected more than 0 and at most 36500, got {days:g}")
        now = timezone.now()
        since = now - timedelta(days=days)
        result = audit(since, now)
        self._show(
            [
                f"{finding.series} at {finding.slot:%Y-%m-%d %H:%M:%S} {finding.what}"
                for finding in result.findings
            ]
        )
        self.stdout.write(
            f"{result.slots} slots of {result.series} series in {days:g} days: "
            f"{len(result.missing)} missing, {len(result.doubled)} doubled, {len(result.overdue)} overdue"
        )
        if result.findings:
            raise CommandError("the ledger differs from the schedules")

    def _audit_chains(self, name: str) -> None:
        reporter = Reporter.objects.filter(name=name).first()
        if reporter is None:
            names = ", ".join(Reporter.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"--reporter: there is no reporter {name!r}; there are: {names}")
        result = audit_chains(reporter)
        self._show([str(finding) for finding in result.findings])
        self.stdout.write(
            f"{result.records} records of {result.chains} chains of {name}: "
            f"{result.missing} missing, {result.doubled} doubled, {result.altered} altered"
        )
        for what, count in result.others.items():
            if count:
                self.stdout.write(f"{count} {what}")
        if not result.is_sound:
            raise CommandError(f"the depot differs from the chains of {name}")

    def _show(self, findings: Sequence[str]) -> None:
        for finding in findings[:SHOWN]:
            self.stdout.write(finding)
        if len(findings) > SHOWN:
            self.stdout.write(f"... and {len(findings) - SHOWN} more")
