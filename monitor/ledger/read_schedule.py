"""Read a schedule as the server does: its cron by cronsim, all else as the agents do.

What the two would read differently would be missed for ever: one table of cases and random expressions hold
``read_cron`` and ``reporters.cron.parse`` together (``tests/reporters/test_schedule.py``).
"""

from __future__ import annotations

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from reporters import schedule
from reporters.cron import Cron, InvalidSchedule, resolve

ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)


def read_schedule(
    expression: str,
    name: str,
    *,
    zone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> schedule.Schedule:
    """The schedule of the series *name*.

    Raises:
        InvalidSchedule: as ``reporters.schedule.parse``.
    """
    return schedule.parse(
        expression, name=name, zone=zone, starts_at=starts_at, ends_at=ends_at, read=read_cron
    )


def read_cron(expression: str, name: str) -> Cron:
    """What *expression* means for the series *name*; raises InvalidSchedule. H becomes a number before."""
    plain = resolve(expression, name)
    try:
        read = CronSim(plain, ANY_TIME)
    except CronSimError as error:
        raise InvalidSchedule(f"schedule {expression!r}: {error}") from error
    return Cron(
        minutes=tuple(sorted(read.minutes)),
        hours=tuple(sorted(read.hours)),
        days=frozenset(read.days),
        months=frozenset(read.months),
        weekdays=frozenset(day % 7 for day in read.weekdays if isinstance(day, int)),
        either=not read.day_and,
        text=plain,
    )
