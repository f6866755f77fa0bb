"""Execute one claimed run on this host: what the home reporter's worker does."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.utils import timezone

from monitor.models import Run
from monitor.models.run import State
from monitor.services import deliver
from monitor.services.claim import lease_until
from monitor.services.expectation import expected_seconds
from reporters import report as wire
from reporters import run as reporter

if TYPE_CHECKING:
    import uuid
    from types import TracebackType


def execute(run_id: uuid.UUID, attempt: int) -> None:
    """Run what was claimed as *attempt*, spool its report, deliver it.

    Does nothing if somebody else has the run: a task may arrive twice, claiming decides.
    """
    deliver.deliver()  # the report of an earlier attempt may lie in the spool
    run = _begin(run_id, attempt)
    if run is None:
        return
    with Heartbeat(run_id, attempt) as heartbeat:
        assignment = run.series.assignment(run.slot, expected_seconds(run.series, timezone.now()))
        report = reporter.run(assignment, on_stage=heartbeat.enter)
        deliver.hand_in(run.pk, wire.to_json(report))


def _begin(run_id: uuid.UUID, attempt: int) -> Run | None:
    now = timezone.now()
    mine = Run.objects.filter(attempt=attempt, state=State.CLAIMED)
    began = {"started_at": now, "lease_until": lease_until(now)}
    if not mine.move([run_id], State.RUNNING, cause="its reporter began it", **began):
        return None
    return Run.objects.select_related("series__reporter").get(pk=run_id)


@dataclass
class Heartbeat:
    """Keeps a run's lease alive, and says which stage it is in, from a thread of its own.

    The depot may go away and come back meanwhile: a beat that fails is tried again, the run goes on.
    """

    run_id: uuid.UUID
    attempt: int
    _stage: str = ""
    _changed: threading.Event = field(default_factory=threading.Event)
    _ended: bool = False

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._beat_until_ended, name="heartbeat", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._changed.set()
        self._thread.join()

    def enter(self, stage: str) -> None:
        """Note that the run entered *stage*."""
        self._stage = stage
        self._changed.set()

    def _beat_until_ended(self) -> None:
        try:
            while not self._ended:
                self._changed.wait(settings.GRIDCAST_HEARTBEAT_SECONDS)
                self._changed.clear()
                self._beat()
        finally:
            connection.close()

    def _beat(self) -> None:
        try:
            Run.objects.filter(pk=self.run_id, attempt=self.attempt, state=State.RUNNING).update(
                lease_until=lease_until(timezone.now()), stage=self._stage
            )
        except (DatabaseError, InterfaceError):
            connection.close()  # the next beat connects anew
