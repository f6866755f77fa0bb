"""Holds: no run of a series, suite, site or reporter starts for a while. User and reason are recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db import models
from django.db.models.functions import Greatest

from monitor.models.identity import Identity
from monitor.models.series import Series, SeriesQuerySet
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MAX_REASON_CHARACTERS = 500
# ``ended_by`` of a hold that was not in force when its identity was deleted.
IDENTITY_IS_GONE = "its author was suspended, and the identity is gone"
# ``ended_by`` of a hold that was not in force for a while: another one began when it was again.
AUTHOR_WAS_SUSPENDED = "its author was suspended"


class HoldKind(models.TextChoices):
    SERIES = "series"
    SUITE = "suite"
    SITE = "site"
    REPORTER = "reporter"


class HoldMode(models.TextChoices):
    PAUSE = "pause", "paused"
    DRAIN = "drain", "drained"


SCOPE_LOOKUPS: dict[str, str] = {  # from a series to the names of its scopes
    HoldKind.SERIES: "name",
    HoldKind.SUITE: "suite__name",
    HoldKind.SITE: "bindings__resource__site__name",
    HoldKind.REPORTER: "reporter__name",
}


@dataclass(frozen=True)
class Scope:
    """The scope of a hold. A site as a scope contains the series that bind one of its resources."""

    kind: HoldKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    def series(self) -> SeriesQuerySet:
        """Return all series of the scope, each once."""
        matching = Series.objects.filter(**{SCOPE_LOOKUPS[self.kind]: self.name})
        return Series.objects.filter(pk__in=matching.values("pk"))


class HoldQuerySet(models.QuerySet["Hold"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> HoldQuerySet:
        """Return the holds of scopes with a series that *user* may see; ended holds are included."""
        if sees_all(user):
            return self
        visible = Series.objects.visible_to(user)
        is_visible = models.Q(pk__in=[])
        for kind, named in SCOPE_LOOKUPS.items():
            of_scope = visible.filter(**{named: models.OuterRef("name")})
            is_visible |= models.Q(kind=kind) & models.Q(has_row(of_scope))
        return self.filter(is_visible)

    def at(self, now: datetime) -> HoldQuerySet:
        """Return the holds in force at *now*, oldest first: without those of suspended identities."""
        is_admitted = models.Q(identity=None) | models.Q(identity__in=Identity.objects.in_force(now))
        return self.filter(is_admitted, ended_at=None).exclude(until__lte=now).order_by("began_at", "id")

    def covering(self, time: datetime) -> HoldQuerySet:
        """Return the holds that were in force at *time*, which may be past, oldest first."""
        is_admitted = models.Q(identity=None) | models.Q(identity__in=Identity.objects.in_force_at(time))
        begun = self.filter(is_admitted, began_at__lte=time)
        begun = begun.exclude(ended_at__lte=time).exclude(until__lte=time)
        return begun.order_by("began_at", "id")

    def ended_after(self, time: datetime) -> HoldQuerySet:
        """Return the holds that end later than *time*, by their own time or by a user, or not at all."""
        is_longer = models.Q(ended_at__gt=time) | models.Q(ended_at=None)
        return self.filter(is_longer).exclude(ended_at=None, until__lte=time)

    def end_as_of(self, time: datetime, ended_by: str) -> None:
        """End the holds as of *time*, since when they were not in force; also those that were ended later.

        *ended_by* says why those ended that had no end yet.
        """
        ended_at = Greatest("began_at", models.Value(time))
        self.filter(ended_at__gt=time).update(ended_at=ended_at)
        self.filter(ended_at=None).ended_after(time).update(ended_at=ended_at, ended_by=ended_by)

    def overdue(self, now: datetime) -> HoldQuerySet:
        return self.filter(ended_at=None, until__lte=now)

    def of(self, scope: Scope) -> HoldQuerySet:
        return self.filter(kind=scope.kind, name=scope.name)

    def over(self, series: Series) -> HoldQuerySet:
        """Return the holds of *series*, its suite, its reporter and its sites."""
        names = Series.objects.filter(pk=series.pk).order_by()
        covering = models.Q(pk__in=[])
        for kind, named in SCOPE_LOOKUPS.items():
            covering |= models.Q(kind=kind, name__in=names.values(named))
        return self.filter(covering)


class Hold(models.Model):
    """A hold: no run of a scope starts from *began_at* until *until*, or until a user resumes the scope.

    It keeps *identity*, by which its author acted, and is not in force while that is suspended: the author
    was dismissed. It ends when a suspended identity is deleted. Without one it is a statement about the grid,
    which stays when its author goes.

    The scope is stored by name. Database triggers rename a hold when its scope is renamed, and end it when
    the scope is deleted.
    """

    kind = models.CharField(max_length=8, choices=HoldKind.choices)
    name = models.CharField(max_length=100)
    mode = models.CharField(max_length=5, choices=HoldMode.choices)
    who = models.CharField(max_length=200)
    identity = models.ForeignKey(
        Identity,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        help_text="the identity by which the user acted; the hold is not in force while it is suspended",
    )
    why = models.CharField(max_length=MAX_REASON_CHARACTERS)
    began_at = models.DateTimeField()
    until = models.DateTimeField(null=True, help_text="when the hold ends by itself; empty: never")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True)
    ended_why = models.CharField(max_length=MAX_REASON_CHARACTERS, blank=True)

    objects = HoldQuerySet.as_manager()

    class Meta:
        ordering = ["-began_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "name"], condition=models.Q(ended_at=None), name="hold_open_once"
            ),
            models.CheckConstraint(condition=models.Q(kind__in=HoldKind.values), name="hold_kind_known"),
            models.CheckConstraint(condition=models.Q(mode__in=HoldMode.values), name="hold_mode_known"),
            models.CheckConstraint(
                condition=~models.Q(why="") & ~models.Q(who=""), name="hold_has_who_and_why"
            ),
            models.CheckConstraint(
                condition=models.Q(until=None) | models.Q(until__gt=models.F("began_at")),
                name="hold_ends_after_it_began",
            ),
        ]
        indexes = [
            models.Index(fields=["kind", "name", "-began_at"], name="hold_history"),
            models.Index(fields=["-began_at"], name="hold_newest"),
            models.Index(
                fields=["-ended_at"], condition=models.Q(ended_at__isnull=False), name="hold_ended_last"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.reason}"

    @property
    def scope(self) -> Scope:
        return Scope(HoldKind(self.kind), self.name)

    @property
    def reason(self) -> str:
        """The reason of a run that the hold skips: ``paused by ada: disk swap``."""
        return f"{HoldMode(self.mode).label} by {self.who}: {self.why}"
