"""``manage.py audit``: print the audit record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand
from django.forms.models import model_to_dict
from django.utils import timezone

from monitor.depot.access.audit_list import AuditFilter, selected_events
from monitor.management.time_options import parse_time
from monitor.models import AuditEvent
from monitor.models.audit_event import AuditOutcome

if TYPE_CHECKING:
    from argparse import ArgumentParser

LATEST = 50


class Command(BaseCommand):
    help = "Print changes and denied attempts, newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", help="only events of this user")
        parser.add_argument("--subject", help="only events about this object: a name, or a part of a path")
        parser.add_argument("--outcome", choices=AuditOutcome.values)
        parser.add_argument("--since", help="only events since this time, such as 2026-03-01T18:00Z")
        parser.add_argument("--limit", type=int, default=LATEST, help="default: %(default)s")
        parser.add_argument("--json", action="store_true", help="one JSON object a line, with the changes")

    def handle(self, **options: Any) -> None:
        since = options["since"]
        chosen = AuditFilter(
            start=parse_time("--since", since, example="2026-03-01T18:00Z") if since else None,
            end=timezone.now(),
            **{name: options[name] or "" for name in ("user", "subject", "outcome")},
        )
        events = selected_events(chosen, AuditEvent.objects.all())
        for event in events[: max(options["limit"], 0)]:
            self.stdout.write(_json(event) if options["json"] else _line(event))


def _json(event: AuditEvent) -> str:
    return json.dumps(
        model_to_dict(event) | {"at": event.at.isoformat(), "last_at": event.last_at.isoformat()}
    )


def _line(event: AuditEvent) -> str:
    by = event.user or "anonymous"
    if event.token:
        by += f" by {event.token}"
    if event.address:
        by += f" from {event.address}"
    times = f" x {event.repeats}" if event.repeats > 1 else ""
    changed = "; ".join(f"{change['kind']} {change['name']}" for change in event.changes)
    line = f"{event.last_at:%Y-%m-%d %H:%M:%S}  {event.outcome}{times}  {by}  {event.action} {event.target}"
    return f"{line}  [{changed}]" if changed else line
