"""In place of Django's command of this name, which ends no session and leaves no record."""

from __future__ import annotations

from monitor.management.replaced_command import ReplacedCommand


class Command(ReplacedCommand):
    help = "Replaced by: manage.py account password USER"
    instead = "manage.py account password USER"
