"""The expectation ledger: a run for every slot of every series, what became of it, and how."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import models, transaction

from monitor.db import binary
from monitor.depot.engines import engine
from monitor.depot.rollups import mark_dirty
from monitor.models.series import Series

if TYPE_CHECKING:
    import uuid
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser


SCHEDULE = "schedule"  # the trigger of a slot of a series' own
RETRY = "retry"  # of one more, after a run that did not pass
PLANNED = (SCHEDULE, RETRY)  # all others somebody has asked for


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
DID_NOT_PASS = (State.FAILED, State.BROKEN, State.TIMED_OUT, State.LOST, State.MISSED)
ENDED = (*REPORTED, State.MISSED, State.LOST)

RECENT = timedelta(days=31)  # what began since then is what people ask for most

# What may follow what. A late report corrects "missed" and "lost"; a report is never overwritten. The depot
# has the same table, in a trigger, and refuses everything else, whoever asks.
FOLLOWS: dict[str, tuple[str, ...]] = {
    State.EXPECTED: (State.CLAIMED, State.SKIPPED, State.MISSED, *REPORTED),
    State.CLAIMED: (State.RUNNING, State.EXPECTED, State.LOST, *REPORTED),
    State.RUNNING: (State.EXPECTED, State.LOST, *REPORTED),
    State.MISSED: REPORTED,
    State.LOST: REPORTED,
}


class Ending(NamedTuple):
    """How a run ended, as its reporter said."""

    run: uuid.UUID
    slot: datetime
    state: str
    cause: str
    reason: str
    stage: str
    failed_resource: str
    started_at: datetime | None
    ended_at: datetime | None


# Hardly any run of the ledger may still end: a planner that knew would expect one, and compare each that
# there is with all that is said. Of what it cannot estimate it expects more, and hashes, or uses the key.
_END = """
UPDATE monitor_run AS run
SET state = said.state, cause = said.cause, reason = said.reason, stage = said.stage,
    failed_resource = said.failed_resource, started_at = said.started_at, ended_at = said.ended_at
FROM unnest(%b::uuid[], %b::timestamptz[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
    %b::timestamptz[], %b::timestamptz[])
    AS said (run, slot, state, cause, reason, stage, failed_resource, started_at, ended_at)
WHERE run.id = said.run AND run.slot = said.slot AND run.slot BETWEEN %b AND %b
    AND run.state || '' = ANY (%b)
"""


class RunQuerySet(models.QuerySet["Run"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
        return self.filter(series__in=Series.objects.visible_to(user))

    def due(self, now: datetime) -> RunQuerySet:
        return self.filter(state=State.EXPECTED, due_at__lte=now)

    def overdue(self, before: datetime) -> RunQuerySet:
        """Planned runs that were due at *before* and have not begun; none that may wait longer than that."""
        kept = models.Q(kept_until__gt=before)
        return self.due(before).filter(trigger__in=PLANNED, started_at=None).exclude(kept)

    def wanted(self) -> RunQuerySet:
        """All but slots of series that were switched off before they began: what began is ended properly."""
        asked = ~models.Q(trigger__in=PLANNED)
        return self.filter(asked | models.Q(series__enabled=True) | models.Q(started_at__isnull=False))

    def pending(self) -> RunQuerySet:
        return self.filter(state__in=PENDING)

    def in_flight(self) -> RunQuerySet:
        return self.filter(state__in=IN_FLIGHT)

    def ended(self) -> RunQuerySet:
        return self.filter(state__in=ENDED)

    def silent(self, now: datetime) -> RunQuerySet:
        """Claimed or running, but not heard of within the lease."""
        return self.in_flight().filter(lease_until__lt=now)

    def find(self, key: uuid.UUID, now: datetime) -> Run | None:
        """The run of this *key*, which does not say when it was: the newest parts of the ledger are looked
        at first, and all others, each of them, only if it is in none of those."""
        those = self.filter(pk=key)
        return those.filter(slot__gt=now - RECENT).first() or those.first()

    def bulk_create(self, objs: Iterable[Run], *args: Any, **kwargs: Any) -> list[Run]:
        """As Django's, after making room for their slots."""
        runs = list(objs)
        engine().make_room({run.slot for run in runs})
        return super().bulk_create(runs, *args, **kwargs)

    def move(
        self,
        ids: Iterable[uuid.UUID],
        to: State,
        *,
        cause: str,
        slots: Collection[datetime] | None = None,
        **fields: Any,
    ) -> int:
        """Move those runs that may go to *to* there, in one statement; return how many went.

        Who knows their *slots* says them, and the parts of the ledger that have others are left alone.

        The one place, beside ``end``, in which a run's state changes: whoever comes second moves nothing.
        *cause* is kept in the run's transitions.
        """
        wanted = list(ids)
        sources = [state for state, targets in FOLLOWS.items() if to in targets]
        with transaction.atomic(savepoint=False):  # no end without its mark
            those = self if slots is None else self.filter(slot__in=slots)
            moved = those.filter(id__in=wanted, state__in=sources).update(state=to, cause=cause, **fields)
            if moved and to in ENDED:
                mark_dirty.mark_runs(wanted, slots)
        return moved


def end(endings: Sequence[Ending]) -> None:
    """Move each run to where its report says, those that may still go there, in one statement."""
    columns = [list(column) for column in zip(*endings, strict=True)]
    slots = [one.slot for one in endings]
    sources = [state for state, targets in FOLLOWS.items() if set(REPORTED) <= set(targets)]
    with binary.cursor() as cursor:
        cursor.execute(_END, [*columns, min(slots), max(slots), sources])


class Run(models.Model):
    """What became of one slot of a series. Its identity is made from (series, slot).

    Runs lie in parts by slot: to the depot the key is (id, slot), and nothing refers to it by a constraint.
    Whoever knows the slot as well says so, and one part is looked at instead of all.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="runs")
    slot = models.DateTimeField()
    due_at = models.DateTimeField(help_text="when it may begin: its slot, and what its series adds to it")
    kept_until = models.DateTimeField(null=True, help_text="how long it may wait for what it needs alone")
    trigger = models.CharField(max_length=900, default=SCHEDULE, help_text="the schedule, or who asked, why")
    forced = models.BooleanField(default=False, help_text="asked for although its series was held")
    state = models.CharField(max_length=10, choices=State.choices, default=State.EXPECTED)
    reason = models.TextField(blank=True)
    cause = models.CharField(max_length=200, blank=True, help_text="what brought it into its state")
    attempt = models.PositiveSmallIntegerField(default=0)
    stage = models.CharField(max_length=100, blank=True, help_text="the stage that it is in, or failed in")
    claimed_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    failed_resource = models.CharField(max_length=100, blank=True)

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
                condition=models.Q(state="expected", kept_until__isnull=False),
                name="run_kept",
            ),
            models.Index(
                fields=["lease_until"],
                condition=models.Q(state__in=["claimed", "running"]),
                name="run_in_flight",
            ),
            models.Index(fields=["-ended_at"], name="run_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.series} at {self.slot:%Y-%m-%d %H:%M:%S}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self._state.adding:
            engine().make_room([self.slot])
        super().save(*args, **kwargs)

    @property
    def is_pending(self) -> bool:
        return self.state in PENDING

    @property
    def seconds(self) -> float | None:
        """How long it took, from its first to its last breath."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


class Transition(models.Model):
    """A run went from one state to another. Written by the database itself, so that none is forgotten."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_constraint=False, related_name="transitions")
    source = models.CharField(max_length=10, choices=State.choices)
    target = models.CharField(max_length=10, choices=State.choices)
    at = models.DateTimeField(help_text="by the clock of the database")
    cause = models.CharField(max_length=200)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.source} -> {self.target}, {self.cause}"
