"""Execute claimed runs on this host: what the home reporter's worker does."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from monitor.ledger.claim import lease_until
from monitor.models import Run
from monitor.models.run import State
from monitor.worker import deliver_spool
from monitor.worker.start_runs import StartedRun, start_runs
from reporters import report as wire
from reporters import run as reporter

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Sequence
    from datetime import datetime
    from types import TracebackType


_NOT_WORTH_TELLING_SECONDS = 0.2  # a stage that is over so soon is not told of


def run_claimed(run_ids: Sequence[uuid.UUID], slots: Collection[datetime] | None = None) -> None:
    """Run what was claimed, one after the other; spool the reports, and deliver them in the end. Who knows
    their *slots* says them: then they are looked for there alone.

    Passes over what somebody else has: a task may arrive twice, claiming decides. What comes after a run that
    takes unexpectedly long is left to others before its lease ends.
    """
    good_until = time.monotonic() + settings.GRIDCAST_LEASE_SECONDS / 2
    with LeaseKeeper() as heartbeat:
        for begun in start_runs(_not_run_yet(run_ids), timezone.now(), slots):
            if time.monotonic() > good_until:
                break
            heartbeat.keep(begun)
            report = reporter.run(begun.assignment, on_stage=heartbeat.enter)
            deliver_spool.spool_report(begun.run_id, wire.to_json(report))
    deliver_spool.deliver()


def _not_run_yet(run_ids: Sequence[uuid.UUID]) -> list[uuid.UUID]:
    """All but those whose report, of an earlier attempt, waits in the spool: the depot is away, or slow."""
    if any(map(deliver_spool.is_spooled, run_ids)):
        deliver_spool.deliver()
    return [run for run in run_ids if not deliver_spool.is_spooled(run)]


class LeaseKeeper:
    """Keeps the lease of the run that is under way alive, and says which stage it is in, from a thread.

    The depot may go away and come back meanwhile: a beat that fails is tried again, the run goes on.
    """

    def __init__(self) -> None:
        self._run: StartedRun | None = None
        self._stage = ""
        self._changed = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._changed.set()
        self._thread.join()

    def keep(self, run: StartedRun) -> None:
        """From now on it is *run* that is under way."""
        self._run, self._stage = run, ""

    def enter(self, stage: str) -> None:
        """Note that the run entered *stage*."""
        self._stage = stage
        self._changed.set()

    def _beat_until_ended(self) -> None:
        try:
            while not self._is_over():
                self._beat()
        finally:
            connection.close()

    def _is_over(self) -> bool:
        """Wait for what is worth a beat, or the end. What ends soon is not worth one."""
        self._changed.wait(settings.GRIDCAST_HEARTBEAT_SECONDS)
        self._changed.clear()
        return self._ended.wait(_NOT_WORTH_TELLING_SECONDS)

    def _beat(self) -> None:
        run = self._run
        if run is None:
            return
        try:
            mine = Run.objects.filter(pk=run.run_id, slot=run.assignment.slot)
            mine.filter(attempt=run.attempt, state=State.RUNNING).update(
                lease_until=lease_until(timezone.now()), stage=self._stage
            )
        except (DatabaseError, InterfaceError):
            connection.close()  # the next beat connects anew
