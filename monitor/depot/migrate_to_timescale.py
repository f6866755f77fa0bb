"""Migrate a depot in use to TimescaleDB."""

from __future__ import annotations

from collections.abc import Callable

from django.utils import timezone

from monitor.core.db import timescale_extension
from monitor.core.db.advisory_locks import AdvisoryLock, session_lock
from monitor.depot import move_to_hypertables
from monitor.depot.engines import continuous_aggregates, engine
from monitor.depot.engines.timescale import TimescaleEngine
from monitor.depot.rollups import worker

IN_PROGRESS = "another process migrates this depot to TimescaleDB at the moment"


class MigrationInProgress(Exception):
    """Another process migrates the depot at the moment."""


def migrate(report: Callable[[str], None]) -> bool:
    """Migrate the depot; return False if nothing had to be done. *report* is called before every step.

    Ingest and queries continue meanwhile. The old tables stay until the new ones have been compared with
    them, so the disk needs room for both. If the process is killed, the next call continues.

    Raises:
        TimescaleUnavailable: TimescaleDB cannot be used here; the message says what to do.
        MigrationInProgress: another process migrates the depot.
        monitor.depot.move_to_hypertables.CopyDiffers: a copy differs from its original.
        monitor.depot.move_to_hypertables.TablesInUse: the tables could not be locked.
    """
    with session_lock(AdvisoryLock.MIGRATE_TO_TIMESCALE) as is_ours:
        if not is_ours:
            raise MigrationInProgress(IN_PROGRESS)
        extension = timescale_extension.create()
        if is_complete(extension):
            return False
        move_to_hypertables.move(report)
        if not extension.is_apache:
            with worker.exclusive():
                continuous_aggregates.replace_tables(report)
        report("compressing old chunks")
        engine().prepare_ahead(timezone.now())
        move_to_hypertables.analyse()
    return True


def is_complete(extension: timescale_extension.Extension) -> bool:
    """Return whether the depot uses everything that the licence of TimescaleDB allows."""
    return isinstance(engine(), TimescaleEngine) or (extension.is_apache and move_to_hypertables.is_done())


def abandon() -> bool:
    """Remove the tables of an unfinished migration; return whether such tables existed.

    Raises:
        MigrationInProgress: another process migrates the depot.
    """
    with session_lock(AdvisoryLock.MIGRATE_TO_TIMESCALE) as is_ours:
        if not is_ours:
            raise MigrationInProgress(IN_PROGRESS)
        return move_to_hypertables.abandon()
