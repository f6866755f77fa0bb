"""Command-line options whose value is a time."""

from __future__ import annotations

from datetime import UTC, datetime

from django.core.management.base import CommandError
from django.utils.dateparse import parse_datetime


def parse_time(option: str, text: str, *, example: str) -> datetime:
    """Parse the value of *option*, a time such as *example*; a time without an offset is UTC.

    Raises:
        CommandError: *text* is not ISO 8601.
    """
    try:
        time = parse_datetime(text)
    except ValueError:
        time = None
    if time is None:
        raise CommandError(f"{option}: expected a time such as {example}, got {text!r}")
    return time if time.tzinfo else time.replace(tzinfo=UTC)
