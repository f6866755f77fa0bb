"""``manage.py report_schema``: print the JSON Schema of reports."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

from monitor.runs.ingest.report_schema import schema


class Command(BaseCommand):
    help = "Print the JSON Schema of the reports that programs outside of gridcast send (docs/reports.md)."
    requires_system_checks = ()

    def handle(self, **_: Any) -> None:
        self.stdout.write(json.dumps(schema(), indent=2))
