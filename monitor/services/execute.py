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
from monitor.services.begin import begin
from monitor.services.claim import lease_until
from reporters import report as wire
from reporters import run as reporter

if TYPE_CHECKING:
    import uuid
    from types import TracebackType


_NOT_WORTH_TELLING_SECONDS = 0.2  # a stage that is over so soon is not told of


def execute(run_id: uuid.UUID) -> None:
    """Run what was claimed, spool its report, deliver it.

    Does nothing if somebody else has the run: a task may arrive twice, claiming decides.
    """
    if deliver.waits(run_id):  # the report of an earlier attempt, which could not be delivered then
        deliver.deliver()
        if deliver.waits(run_id):  # the depot is away, or somebody else is at it: it is not run again
            return
    begun = begin(run_id, timezone.now())
    if begun is None:
        return
    with Heartbeat(run_id, begun.attempt) as heartbeat:
        report = reporter.run(begun.assignment, on_stage=heartbeat.enter)
        spooled = wire.to_json(report)
    deliver.hand_in(run_id, spooled)


@dataclass
class Heartbeat:
    """Keeps a run's lease alive, and says which stage it is in, from a thread of its own.

    The depot may go away and come back meanwhile: a beat that fails is tried again, the run goes on.
    """

    run_id: uuid.UUID
    attempt: int
    _stage: str = ""
    _changed: threading.Event = field(default_factory=threading.Event)
    _ended: threading.Event = field(default_factory=threading.Event)

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
        try:
            Run.objects.filter(pk=self.run_id, attempt=self.attempt, state=State.RUNNING).update(
                lease_until=lease_until(timezone.now()), stage=self._stage
            )
        except (DatabaseError, InterfaceError):
            connection.close()  # the next beat connects anew
