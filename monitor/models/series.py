"""Series: what is run, where, when, and by which reporter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import models

from monitor.core.db import text_lookup  # noqa: F401  # registers ``has_text``
from monitor.models.binding import Binding
from monitor.models.natural_order import sort_name_field
from monitor.models.site import OPERATE, Site, may_manage_everywhere
from monitor.models.suite import Suite, visible_suites
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

IMPORTED = (
    "import-"  # prefix of ``probe`` for imported series, before the data format; no probe has such a name
)
STARTS_RUNS = (  # fields that control how a reporter starts runs
    "leader",
    "follows",
    "jitter_seconds",
    "retry_schedule",
    "exclusive",
    "max_load1",
    "warm_up_runs",
)
REPORTED_PROBE = (
    "reported"  # ``probe`` of series whose runs programs outside of gridcast report; no probe has it
)


class Follows(models.TextChoices):
    """The ways in which a series follows its leader."""

    WITH = "with", "with the leader: at the leader's slots"
    AFTER = "after", "after the leader: when the leader's run of the slot has ended"


class Measures(models.TextChoices):
    """The kind of a series' measurements, if it differs from ``probes.base.Probe.kind``."""

    GRID = "grid", "the grid: predicts applications"
    APPLICATION = "application", "an application: predicted from probes of its resources too"


class SeriesQuerySet(models.QuerySet["Series"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SeriesQuerySet:
        """Return the series of the suites that *user* may see."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        return self.filter(suite__in=visible_suites(user))

    def open_to_all(self) -> SeriesQuerySet:
        """Return the series that every active user may see: those of suites without viewers."""
        return self.filter(suite__viewers__isnull=True)

    def manageable_by(
        self, user: AbstractBaseUser | AnonymousUser, permission: str = OPERATE
    ) -> SeriesQuerySet:
        """Return the visible series that *user* may run; of a site admin, those that use its sites.

        With another *permission*, those with which the user may do what it permits.
        """
        visible = self.visible_to(user)
        if may_manage_everywhere(user, permission):
            return visible
        sites = Site.objects.manageable_by(user, permission).order_by().values("pk")
        at_sites = Binding.objects.filter(resource__site__in=sites).order_by()
        return visible.filter(pk__in=at_sites.values("series"))

    def scheduled(self) -> SeriesQuerySet:
        """Return the enabled series with a schedule of their own, or with an enabled leader's schedule."""
        has_leader = models.Q(leader__enabled=True) & ~models.Q(leader__schedule="")
        return self.filter(~models.Q(schedule="") | has_leader, enabled=True)


class Series(models.Model):
    """A probe with parameters, bound to resources, on a schedule, run by one reporter."""

    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, db_index=False, related_name="series")
    name = models.SlugField(unique=True, max_length=100)
    sort_name = sort_name_field()
    probe = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=11,
        blank=True,
        default="",
        db_default="",
        choices=Measures,
        help_text="what its runs measure; empty: as its probe says",
    )
    parameters = models.JSONField(default=dict, blank=True)
    reporter = models.ForeignKey("monitor.Reporter", on_delete=models.PROTECT, related_name="series")
    schedule = models.CharField(
        max_length=200, blank=True, help_text="five-field cron expression; H is a slot hashed from the name"
    )
    timezone = models.CharField(
        max_length=50, default="UTC", help_text="time zone of the schedule, an IANA name"
    )
    starts_at = models.DateTimeField(null=True, blank=True, help_text="no slots before this time")
    ends_at = models.DateTimeField(null=True, blank=True, help_text="no slots after this time")
    leader = models.ForeignKey(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="followers",
        help_text="the series that it follows instead of having a schedule",
    )
    follows = models.CharField(max_length=5, blank=True, choices=Follows)
    delay_seconds = models.PositiveIntegerField(
        default=0, help_text="delay after the leader's slot, or after the end of its run"
    )
    jitter_seconds = models.PositiveIntegerField(
        default=0, help_text="start each run up to this long after its slot, at a hashed time"
    )
    retry_schedule = models.CharField(
        max_length=200,
        blank=True,
        help_text="cron expression for additional runs after one that did not pass",
    )
    retry_passes = models.PositiveSmallIntegerField(
        default=1, help_text="stop the additional runs after this many passed runs in a row"
    )
    exclusive = models.CharField(
        max_length=4,
        blank=True,
        choices=[
            ("site", "site: shares no site with another exclusive series"),
            ("link", "link: shares no pair of sites"),
        ],
        help_text="what it must not share with another exclusive series while it runs",
    )
    exclusive_wait_seconds = models.PositiveIntegerField(
        default=900, help_text="how long a slot may wait for other exclusive series"
    )
    max_load1 = models.FloatField(
        null=True,
        blank=True,
        help_text="skip a run while the one-minute load average of any of its resources is above this",
    )
    warm_up_runs = models.PositiveSmallIntegerField(
        default=0,
        help_text="runs of the probe before the measured one, at most 5; their values are discarded",
    )
    enabled = models.BooleanField(default=True)
    # Written by the ledger; a database trigger empties both when the schedule changes.
    scheduled_since = models.DateTimeField(null=True, editable=False)
    expanded_until = models.DateTimeField(null=True, editable=False)
    limit_seconds = models.FloatField(default=1800.0)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SeriesQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        verbose_name_plural = "series"
        permissions = [("run_series", "Can run a series now")]
        # Pages read the keys of the series of some suites or probes, and search all names, without the rows.
        indexes = [
            models.Index(fields=["suite", "id"], name="series_of_suite"),
            models.Index(fields=["probe", "suite", "id"], name="series_of_probe"),
            models.Index(fields=["sort_name"], include=["id", "suite", "name"], name="series_by_name"),
            models.Index(
                fields=["id"], condition=models.Q(probe__startswith=IMPORTED), name="series_imported"
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=models.Q(limit_seconds__gt=0), name="series_limit_positive"),
            models.CheckConstraint(
                condition=models.Q(max_load1__gt=0),
                name="series_max_load1_positive",
                violation_error_message="Expected a maximum load above 0, or none.",
            ),
            models.CheckConstraint(
                condition=models.Q(warm_up_runs__lte=5),
                name="series_warm_up_runs_few",
                violation_error_message="Expected at most 5 warm-up runs.",
            ),
            models.CheckConstraint(
                condition=models.Q(leader=None, follows="")
                | models.Q(~models.Q(follows=""), schedule="", leader__isnull=False),
                name="series_has_a_schedule_or_follows",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Raise ValidationError unless the series has a schedule of its own, or its leader has a schedule."""
        self._check_reported()
        if self.is_imported and (self.schedule or self.leader is not None):
            raise ValidationError({"schedule": "This series was imported: no reporter can run it."})
        if self.leader is not None and (self.leader.leader_id or self.leader.pk == self.pk):
            raise ValidationError({"leader": "Expected a series with a schedule of its own."})
        if self.leader is not None and Series.objects.filter(leader=self.pk).exists():
            raise ValidationError({"leader": "Other series follow this one: it needs a schedule of its own."})
        leader = self.leader if self.follows == Follows.AFTER and self.reporter_id else None
        if leader and self.reporter.is_remote and leader.reporter_id != self.reporter_id:
            expected = f"Expected a series of reporter {self.reporter}: an agent waits only for its own runs."
            raise ValidationError({"leader": expected})
        if bool(self.leader) != bool(self.follows) or (self.leader and self.schedule):
            raise ValidationError({"follows": "Expected a schedule, or a leader and how to follow it."})

    def _check_reported(self) -> None:
        """Raise ValidationError if programs outside of gridcast report the series, and others control it."""
        if not self.is_reported:
            return
        if self.reporter_id and self.reporter.is_remote:
            raise ValidationError({"reporter": "Expected no agent: programs outside of gridcast report it."})
        default = Series()
        for field in STARTS_RUNS:
            if getattr(self, field) != getattr(default, field):
                raise ValidationError({field: "Expected none: programs outside of gridcast start its runs."})

    @property
    def is_reported(self) -> bool:
        """Whether programs outside of gridcast run and report the series."""
        return self.probe == REPORTED_PROBE

    @property
    def is_imported(self) -> bool:
        """Whether the data of the series were imported: no reporter can run the series."""
        return self.probe.startswith(IMPORTED)

    @property
    def timing(self) -> str:
        """A description of when the series runs."""
        if self.leader is None:
            return f"{self.schedule} {self.timezone}" if self.schedule else "only on demand"
        later = f", {self.delay_seconds} s later" if self.delay_seconds else ""
        return f"{self.follows} {self.leader.name}{later}"


class FormerReporter(models.Model):
    """A reporter that ran *series* until it was assigned to another; a database trigger writes these rows.

    Reports of slots up to *until* may still be on their way.
    """

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="former_reporters")
    reporter = models.ForeignKey("monitor.Reporter", on_delete=models.CASCADE, related_name="former_series")
    until = models.DateTimeField(help_text="time of the last change, by the database's clock")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["series", "reporter"], name="former_reporter_once"),
        ]

    def __str__(self) -> str:
        return f"{self.reporter} ran {self.series} until {self.until:%Y-%m-%d %H:%M:%S}"
