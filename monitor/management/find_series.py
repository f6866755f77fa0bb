"""Find the series that an option of a command names."""

from __future__ import annotations

from difflib import get_close_matches

from django.core.management.base import CommandError

from monitor.models import Series

_MOST_NAMES = 5


def find_series(name: str) -> Series:
    """Return the series called *name*.

    Raises:
        CommandError: there is none; the message has the nearest names.
    """
    series = Series.objects.filter(name=name).first()
    if series is not None:
        return series
    names = list(Series.objects.order_by("name").values_list("name", flat=True))
    near = get_close_matches(name, names, n=_MOST_NAMES)
    hint = f"near names: {', '.join(near)}" if near else "no series has a near name"
    raise CommandError(f"there is no series {name!r}; {hint}")
