"""Commands of Django that change accounts without the audit record: gridcast has its own for each."""

from __future__ import annotations

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError


class ReplacedCommand(BaseCommand):
    """Refuses, and names the command *instead*, whatever its arguments are."""

    instead: ClassVar[str]
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv[:2])

    def handle(self, *_args: Any, **_options: Any) -> None:
        raise CommandError(f"gridcast has a command of its own, with an audit record: {self.instead}")
