"""Suites and series: what is run, where, when, by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from monitor.models.reporter import Reporter
from monitor.models.site import Resource
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_DAYS = 36_500  # a century
IMPORTED = "import-"  # begins the "probe" of imported series, before the kind of data: no probe has that name


class Follows(models.TextChoices):
    """How a series follows its leader."""

    WITH = "with", "with it: its slots are the leader's"
    AFTER = "after", "after it: it begins when the leader's run of the slot has ended"


class Measures(models.TextChoices):
    """What the runs of a series tell of, where its probe does not say so: as ``probes.base.Probe.kind``."""

    GRID = "grid", "the grid: applications may be forecast from it"
    APPLICATION = "application", "an application: forecast from probes of its resources, too"


def _kept_days(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_DAYS)],
        help_text=f"for so many days {what} are kept; without a number, for ever",
    )


def _kept_no_longer(than: str, less: str) -> models.Q:
    """What is rolled up goes before what it was rolled up to; null is for ever."""
    return models.Q(**{f"{than}__isnull": True}) | models.Q(
        **{f"{less}__isnull": False, f"{less}__lte": models.F(than)}
    )


class SuiteQuerySet(models.QuerySet["Suite"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SuiteQuerySet:
        """The suites that *user* may see: open ones, and those whose viewers he is one of."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        mine = models.Q(viewers__user=user.pk)
        return self.filter(models.Q(viewers__isnull=True) | mine).distinct()


class Suite(models.Model):
    """A named group of series. With *viewers*, only they (and superusers) see it.

    Runs and their outcomes are always kept; ``monitor.depot.retention.apply`` removes the rest in time.
    """

    name = models.SlugField(unique=True)
    title = models.CharField(max_length=200, blank=True)
    viewers = models.ManyToManyField("auth.Group", blank=True)
    keep_reports_days = _kept_days("raw reports")
    keep_samples_days = _kept_days("samples")
    keep_hourly_days = _kept_days("rollups of hours")
    keep_daily_days = _kept_days("rollups of days")

    objects = SuiteQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=_kept_no_longer(than="keep_hourly_days", less="keep_samples_days"),
                name="suite_samples_go_first",
                violation_error_message="Expected rollups of hours to be kept at least as long as samples.",
            ),
            models.CheckConstraint(
                condition=_kept_no_longer(than="keep_daily_days", less="keep_hourly_days"),
                name="suite_hours_go_first",
                violation_error_message="Expected rollups of days to be kept at least as long as of hours.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


# As ``visible_to`` says, in a statement that has the series named ``series``, of a user who is active.
VISIBLE = """(%(sees_all)b OR NOT EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers WHERE viewers.suite_id = series.suite_id
) OR EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers JOIN auth_user_groups AS his USING (group_id)
    WHERE viewers.suite_id = series.suite_id AND his.user_id = %(user)b))"""


class SeriesQuerySet(models.QuerySet["Series"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SeriesQuerySet:
        """The series that *user* may see: those of open suites, and of suites whose viewers he is one of."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        return self.filter(suite__in=Suite.objects.visible_to(user).order_by().values("pk"))

    def scheduled(self) -> SeriesQuerySet:
        """Those of which something is expected: with a schedule of their own, or with their leader's."""
        leader_is = models.Q(leader__enabled=True) & ~models.Q(leader__schedule="")
        return self.filter(~models.Q(schedule="") | leader_is, enabled=True)


class Series(models.Model):
    """A probe with parameters, bound to resources, on a schedule, run by one reporter."""

    suite = models.ForeignKey(Suite, on_delete=models.PROTECT, related_name="series")
    name = models.SlugField(unique=True, max_length=100)
    probe = models.CharField(max_length=100)
    kind = models.CharField(
        max_length=11,
        blank=True,
        default="",
        db_default="",
        choices=Measures,
        help_text="what it tells of; empty: what its probe does",
    )
    parameters = models.JSONField(default=dict, blank=True)
    reporter = models.ForeignKey(Reporter, on_delete=models.PROTECT, related_name="series")
    schedule = models.CharField(max_length=200, blank=True, help_text="five-field cron; H is a hashed slot")
    timezone = models.CharField(
        max_length=50, default="UTC", help_text="whose clock the schedule means, by IANA name"
    )
    starts_at = models.DateTimeField(null=True, blank=True, help_text="no slot is before it")
    ends_at = models.DateTimeField(null=True, blank=True, help_text="no slot is after it")
    leader = models.ForeignKey(
        "self",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="followers",
        help_text="the series whose schedule it follows, instead of one of its own",
    )
    follows = models.CharField(max_length=5, blank=True, choices=Follows)
    delay_seconds = models.PositiveIntegerField(default=0, help_text="how much later than that")
    jitter_seconds = models.PositiveIntegerField(
        default=0, help_text="a run begins up to so long after its slot, each at a time of its own"
    )
    retry_schedule = models.CharField(
        max_length=200, blank=True, help_text="cron for more runs, after one that did not pass"
    )
    retry_passes = models.PositiveSmallIntegerField(
        default=1, help_text="after so many passes in a row only its own schedule holds again"
    )
    exclusive = models.CharField(
        max_length=4,
        blank=True,
        choices=[("site", "no site with another exclusive series"), ("link", "no pair of sites")],
        help_text="what it does not share while it runs",
    )
    exclusive_wait_seconds = models.PositiveIntegerField(
        default=900, help_text="how long a slot may wait for that"
    )
    max_load1 = models.FloatField(
        null=True,
        blank=True,
        help_text="a run is skipped while the load of one minute is above this at any of its resources",
    )
    warm_up_runs = models.PositiveSmallIntegerField(
        default=0, help_text="how often the probe is run before, its values thrown away; at most 5"
    )
    enabled = models.BooleanField(default=True)
    # The ledger's: the database empties both when what the schedule says changes, whoever changes it.
    scheduled_since = models.DateTimeField(null=True, editable=False)
    expanded_until = models.DateTimeField(null=True, editable=False)
    limit_seconds = models.FloatField(default=1800.0)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SeriesQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "series"
        permissions = [("run_series", "Can run a series now")]
        constraints = [
            models.CheckConstraint(condition=models.Q(limit_seconds__gt=0), name="series_limit_positive"),
            models.CheckConstraint(
                condition=models.Q(max_load1__gt=0),
                name="series_max_load1_positive",
                violation_error_message="Expected a greatest load above 0, or none.",
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
        """Raise ValidationError for a schedule that cannot be read, and a leader that does not lead."""
        if self.is_imported and (self.schedule or self.leader is not None):
            raise ValidationError({"schedule": "This series was imported: nothing here can run it."})
        if self.leader is not None and (self.leader.leader_id or self.leader.pk == self.pk):
            raise ValidationError({"leader": "Expected a series with a schedule of its own."})
        if self.leader is not None and Series.objects.filter(leader=self.pk).exists():
            raise ValidationError({"leader": "Others follow this series: it needs a schedule of its own."})
        if bool(self.leader) != bool(self.follows) or (self.leader and self.schedule):
            raise ValidationError({"follows": "Expected a schedule, or a leader and how to follow it."})

    @property
    def is_imported(self) -> bool:
        """Whether somebody else measured it: nothing here can run it."""
        return self.probe.startswith(IMPORTED)

    @property
    def timing(self) -> str:
        """When it runs, in words."""
        if self.leader is None:
            return f"{self.schedule} {self.timezone}" if self.schedule else "only on demand"
        later = f", {self.delay_seconds} s later" if self.delay_seconds else ""
        return f"{self.follows} {self.leader.name}{later}"


class Binding(models.Model):
    """One resource in one role of a series; *position* keeps the order (of a ring, say)."""

    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="bindings")
    role = models.CharField(max_length=50)
    position = models.PositiveSmallIntegerField()
    resource = models.ForeignKey(Resource, on_delete=models.PROTECT, related_name="bindings")

    class Meta:
        ordering = ["series", "role", "position"]
        constraints = [
            models.UniqueConstraint(fields=["series", "role", "position"], name="binding_position_once"),
            models.UniqueConstraint(fields=["series", "role", "resource"], name="binding_resource_once"),
        ]

    def __str__(self) -> str:
        return f"{self.role}[{self.position}] = {self.resource}"
