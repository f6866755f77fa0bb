"""Planned work: what goes on at a time, and what comes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.admission import Window
from monitor.models import Blackout
from monitor.services.read_windows import Span, Times, next_after, open_at
from reporters.schedule import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Work:
    """A blackout with its window that is open, or else the next; *sites* is empty where it is at all."""

    blackout: Blackout
    window: Span
    is_open: bool
    sites: Sequence[str]


def windows(now: datetime) -> tuple[Window, ...]:
    """Those that are open at *now*. Work whose schedule cannot be read is left out, and logged."""
    found = ((one, _read(open_at, one, now)) for one in Blackout.objects.begun(now).prefetch_related("sites"))
    return tuple(
        Window(str(one), span.starts_at, span.ends_at, frozenset(_sites(one))) for one, span in found if span
    )


def planned(user: AbstractBaseUser | AnonymousUser, now: datetime) -> list[Work]:
    """What *user* may know of: what goes on at *now*, then what comes, the next first."""
    found = []
    for one in Blackout.objects.visible_to(user).not_over(now).prefetch_related("sites"):
        current = _read(open_at, one, now)
        window = current or _read(next_after, one, now)
        if window is not None:
            found.append(Work(one, window, current is not None, _sites(one)))
    return sorted(found, key=lambda work: (work.window.starts_at, work.blackout.name))


def times_of(blackout: Blackout) -> Times:
    return Times(
        blackout.starts_at,
        blackout.ends_at,
        blackout.schedule,
        blackout.timezone,
        blackout.duration_seconds,
    )


def _read(asked: Callable[[Times, datetime], Span | None], blackout: Blackout, now: datetime) -> Span | None:
    try:
        return asked(times_of(blackout), now)
    except InvalidSchedule as error:
        logger.error("maintenance %s is not kept to: %s", blackout.name, error)
        return None


def _sites(blackout: Blackout) -> list[str]:
    return [site.name for site in blackout.sites.all()]
