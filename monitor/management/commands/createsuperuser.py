"""In place of Django's command of this name, which grants no role and leaves no record."""

from __future__ import annotations

from monitor.management.replaced_command import ReplacedCommand


class Command(ReplacedCommand):
    help = "Replaced by: manage.py account create USER --role administrator"
    instead = "manage.py account create USER --role administrator"
