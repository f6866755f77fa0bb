"""The ledger: a run for every slot of every series, its state and its transitions."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import models

from monitor.core.db import partitions
from monitor.models.failure_signature import FailureSignature
from monitor.models.series import REPORTED_PROBE, Series
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


SCHEDULE = "schedule"  # the trigger of a slot of the schedule
RETRY = "retry"  # the trigger of an additional run after one that did not pass
PLANNED = (SCHEDULE, RETRY)  # any other trigger names the user who requested the run


class State(models.TextChoices):
    EXPECTED = "expected"
    CLAIMED = "claimed"
    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"
    NO_DATA = "no_data"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    MISSED = "missed"
    LOST = "lost"


PENDING = (State.EXPECTED, State.CLAIMED, State.RUNNING)
IN_FLIGHT = (State.CLAIMED, State.RUNNING)
REPORTED = (State.PASSED, State.FAILED, State.BROKEN, State.NO_DATA, State.TIMED_OUT, State.SKIPPED)
WITH_SIGNATURE = (State.FAILED, State.BROKEN, State.TIMED_OUT)  # failures with a text
JUDGED = (State.PASSED, *WITH_SIGNATURE)  # other runs are evidence of neither success nor failure
DID_NOT_PASS = (State.FAILED, State.BROKEN, State.TIMED_OUT, State.LOST, State.MISSED)
ENDED = (*REPORTED, State.MISSED, State.LOST)

RECENT = timedelta(days=31)  # most requests are for runs of this age


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        if sees_all(user):
            return self
        return self.filter(series__in=Series.objects.visible_to(user))

    def each_visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        """As ``visible_to``, decided for each run: faster where a query reads few runs."""
        if user.is_authenticated and user.is_active and sees_all(user):
            return self
        return self.filter(has_row(Series.objects.visible_to(user).filter(pk=models.OuterRef("series"))))

    def of_workers(self) -> RunQuerySet:
        """Return the runs of Celery workers; ``monitor.runs.ledger.agent_runs`` has those of agents."""
        return self.filter(series__reporter__site=None).exclude(series__probe=REPORTED_PROBE)

    def from_outside(self) -> RunQuerySet:
        """Return the runs that programs outside of gridcast start and report."""
        return self.filter(series__probe=REPORTED_PROBE)

    def by_reporters(self) -> RunQuerySet:
        """Return the runs that reporters start."""
        return self.exclude(series__probe=REPORTED_PROBE)

    def of_agents(self) -> RunQuerySet:
        """Return the runs of the agents of sites."""
        return self.filter(series__reporter__site__isnull=False)

    def due(self, now: datetime) -> RunQuerySet:
        return self.filter(state=State.EXPECTED, due_at__lte=now)

    def overdue(self, before: datetime) -> RunQuerySet:
        """Return planned runs that were due at *before* and never started; omit runs that may wait longer."""
        may_wait = models.Q(wait_until__gt=before)
        return self.due(before).filter(trigger__in=PLANNED, started_at=None).exclude(may_wait)

    def runnable(self) -> RunQuerySet:
        """Return all runs except planned runs of disabled series that have never started."""
        requested = ~models.Q(trigger__in=PLANNED)
        return self.filter(requested | models.Q(series__enabled=True) | models.Q(started_at__isnull=False))

    def pending(self) -> RunQuerySet:
        return self.filter(state__in=PENDING)

    def in_flight(self) -> RunQuerySet:
        return self.filter(state__in=IN_FLIGHT)

    def ended(self) -> RunQuerySet:
        return self.filter(state__in=ENDED)

    def silent(self, now: datetime) -> RunQuerySet:
        """Return claimed and running runs whose lease has expired."""
        return self.in_flight().filter(lease_until__lt=now)

    def find(self, key: uuid.UUID, now: datetime) -> Run | None:
        """Return the run with this *key*, or None.

        The slot is unknown, so recent partitions are searched first.
        """
        runs = self.filter(pk=key)
        return runs.filter(slot__gt=now - RECENT).first() or runs.first()

    def bulk_create(self, objs: Iterable[Run], *args: Any, **kwargs: Any) -> list[Run]:
        """Create missing partitions for the slots of *objs*, then insert *objs* as Django does."""
        runs = list(objs)
        partitions.create_for({run.slot for run in runs})
        return super().bulk_create(runs, *args, **kwargs)


class Run(models.Model):
    """One slot of a series and its outcome. The id is derived from (series, slot).

    The table is partitioned by slot: in the database the key is (id, slot), and no foreign key constraint
    refers to the table. A query that restricts the slot as well reads one partition instead of all.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="runs")
    slot = models.DateTimeField()
    due_at = models.DateTimeField(help_text="when it may start: its slot, plus the jitter of its series")
    wait_until = models.DateTimeField(
        null=True, help_text="how long it may wait for exclusive series or for its leader"
    )
    trigger = models.CharField(
        max_length=900, default=SCHEDULE, help_text="the schedule, or the user who requested it, and why"
    )
    forced = models.BooleanField(default=False, help_text="requested in spite of a hold")
    state = models.CharField(max_length=10, choices=State.choices, default=State.EXPECTED)
    reason = models.TextField(blank=True)
    cause = models.CharField(max_length=200, blank=True, help_text="what caused the last transition")
    attempt = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(
        max_length=100, blank=True, help_text="the current stage, or the one that failed"
    )
    claimed_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    failed_resource = models.CharField(max_length=100, blank=True)
    signature = models.ForeignKey(
        FailureSignature,
        on_delete=models.PROTECT,
        null=True,
        editable=False,
        db_index=False,
        related_name="runs",
        help_text="the cause of its failure; null if it has none, or is not classified yet",
    )

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-slot"]
        constraints = [
            models.UniqueConstraint(fields=["series", "slot"], name="run_series_slot_once"),
            models.CheckConstraint(condition=models.Q(state__in=State.values), name="run_state_known"),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state="expected"), name="run_expected"),
            models.Index(
                fields=["due_at"],
                condition=models.Q(state="expected", wait_until__isnull=False),
                name="run_waiting",
            ),
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["claimed", "running"]),
                name="run_in_flight",
            ),
            models.Index(fields=["-ended_at"], name="run_latest"),
            # Pages of ended runs. Without the condition, ingest would find runs by their slots, and take 1.4
            # times as long.
            models.Index(fields=["slot", "id"], condition=models.Q(state__in=ENDED), name="run_slots"),
            models.Index(
                fields=["slot"],
                condition=models.Q(state__in=["failed", "broken", "timed_out"], signature__isnull=True),
                name="run_unclassified",
            ),
            # Pages of runs that did not pass, and of their causes, without reading the rows of others.
            models.Index(
                fields=["slot", "id", "series", "stage", "signature"],
                condition=models.Q(state__in=DID_NOT_PASS),
                name="run_not_passed",
            ),
            models.Index(
                fields=["signature", "slot"],
                condition=models.Q(signature__isnull=False),
                name="run_of_cause",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.series} at {self.slot:%Y-%m-%d %H:%M:%S}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding:
            partitions.create_for([self.slot])
        super().save(*args, **kwargs)

    @property
    def is_pending(self) -> bool:
        return self.state in PENDING

    @property
    def seconds(self) -> float | None:
        """The duration from start to end, None before the end."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


class Transition(models.Model):
    """A change of the state of a run. A database trigger writes these rows, so that no change is missing."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_constraint=False, related_name="transitions")
    source = models.CharField(max_length=10, choices=State.choices)
    target = models.CharField(max_length=10, choices=State.choices)
    at = models.DateTimeField(help_text="time by the database's clock")
    cause = models.CharField(max_length=200)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.source} -> {self.target}, {self.cause}"
