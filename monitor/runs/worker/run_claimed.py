"""Run claimed runs on this host, in the worker of the home reporter."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from monitor.models import Run
from monitor.models.run import State
from monitor.runs.ledger.claim import lease_until
from monitor.runs.worker import deliver_spool, home_policy
from monitor.runs.worker.start_runs import StartedRun, start_runs
from reporters import run as reporter
from reporters.skipped import skipped

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from types import TracebackType

    from reporters.config import Assignment
    from reporters.report import Report


_SHORT_STAGE_SECONDS = 0.2  # stages that end sooner are not recorded


def run_claimed(run_ids: Sequence[uuid.UUID], slots: Collection[datetime] | None = None) -> None:
    """Run the claimed runs one after the other, spool their reports, then deliver them.

    Runs that are no longer claimed are skipped: a task may arrive twice. After half a lease has passed, the
    remaining runs are left to be claimed again. With *slots* only the partitions of these slots are read.
    """
    stop_at = time.monotonic() + settings.GRIDCAST_LEASE_SECONDS / 2
    with LeaseKeeper() as lease_keeper:
        for started in start_runs(_without_report(run_ids), timezone.now(), slots):
            if time.monotonic() > stop_at:
                break
            lease_keeper.keep(started)
            deliver_spool.spool_report(_report_of(started.assignment, lease_keeper))
    deliver_spool.deliver()


def _report_of(assignment: Assignment, lease_keeper: LeaseKeeper) -> Report:
    """Run *assignment*, unless the site policy of this host refuses it."""
    reason = home_policy.refusal(assignment, timezone.now())
    return skipped(assignment, reason) if reason else reporter.run(assignment, on_stage=lease_keeper.enter)


def _without_report(run_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """Deliver the reports of *run_ids* that earlier attempts have spooled.

    Return the runs that have no report in the spool afterwards.
    """
    spooled = deliver_spool.spooled_among(run_ids)
    if spooled:
        deliver_spool.deliver()
        spooled = deliver_spool.spooled_among(run_ids)
    return [run for run in run_ids if run not in spooled]


class LeaseKeeper:
    """Renews the lease of the current run and records its stage, in a thread.

    A renewal that fails because the depot is unavailable is tried again; the run continues.
    """

    def __init__(self) -> None:
        self._run: StartedRun | None = None
        self._stage = ""
        self._changed = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._renew_until_ended, name="lease-keeper", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._changed.set()
        self._thread.join()

    def keep(self, run: StartedRun) -> None:
        """Renew the lease of *run* from now on."""
        self._run, self._stage = run, ""

    def enter(self, stage: str) -> None:
        """Record that the run entered *stage*."""
        self._stage = stage
        self._changed.set()

    def _renew_until_ended(self) -> None:
        try:
            while not self._wait():
                self._renew()
        finally:
            connection.close()

    def _wait(self) -> bool:
        """Wait until a renewal is due or a stage has lasted a while; return whether the renewals must end."""
        self._changed.wait(settings.GRIDCAST_HEARTBEAT_SECONDS)
        self._changed.clear()
        return self._ended.wait(_SHORT_STAGE_SECONDS)

    def _renew(self) -> None:
        run = self._run
        if run is None:
            return
        try:
            row = Run.objects.filter(pk=run.run_id, slot=run.assignment.slot)
            row.filter(attempt=run.attempt, state=State.RUNNING).update(
                lease_until=lease_until(timezone.now()), stage=self._stage
            )
        except (DatabaseError, InterfaceError):
            connection.close()  # the next renewal connects again
