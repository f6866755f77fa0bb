"""Take a depot that is in use over to TimescaleDB."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from monitor.db import timescale_extension
from monitor.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot import move_to_hypertables
from monitor.depot.engines import continuous_aggregates, engine
from monitor.depot.engines.timescale import Timescale
from monitor.depot.rollups import worker

BUSY = "somebody else takes this depot over to TimescaleDB just now"


class MigrationInProgress(Exception):
    """Somebody else takes the depot over just now."""


def convert(tell: Callable[[str], None]) -> bool:
    """Whether there was something to do; *tell* hears of every step. Who was killed goes on by calling again.

    Reports may come in and be read all the time. The old tables are there until the new ones have been
    compared with them, so that there has to be room for both.

    Raises:
        TimescaleUnavailable: TimescaleDB cannot be used here; says what to do.
        MigrationInProgress: somebody else is at it.
        monitor.depot.move_to_hypertables.CopyDiffers: a copy is not what was copied.
    """
    with session_lock(AdvisoryLock.MIGRATE_TO_TIMESCALE) as is_ours:
        if not is_ours:
            raise MigrationInProgress(BUSY)
        has = timescale_extension.create()
        if is_done(has):
            return False
        move_to_hypertables.convert(tell)
        if not has.is_apache:
            with worker.alone():
                continuous_aggregates.make(tell)
        tell("compressing what is old")
        engine().prepare_ahead(timezone.now())
        move_to_hypertables.analyse()
    return True


def is_done(has: timescale_extension.Extension) -> bool:
    """Whether the depot has all that TimescaleDB gives under its licence."""
    return isinstance(engine(), Timescale) or (has.is_apache and move_to_hypertables.is_done())


def abandon() -> bool:
    """Take away what an unfinished call has made; whether there was something. Raises MigrationInProgress."""
    with session_lock(AdvisoryLock.MIGRATE_TO_TIMESCALE) as is_ours:
        if not is_ours:
            raise MigrationInProgress(BUSY)
        return move_to_hypertables.abandon()
