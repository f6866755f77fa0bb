"""Suites and series: what is run, where, when, and by which reporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.expressions import RawSQL

from monitor.core.db import text_lookup  # noqa: F401  # registers ``has_text``
from monitor.models.natural_order import sort_name_field
from monitor.models.role import identity_of
from monitor.models.site import OPERATE, Resource, Site, may_manage_everywhere
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_DAYS = 36_500  # a century
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


def _kept_days(what: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_DAYS)],
        help_text=f"days to keep {what}; empty: for ever",
    )


def _kept_no_longer(than: str, less: str) -> models.Q:
    """Return the condition that the data *less* are kept at most as long as the data *than*.

    Both are names of columns with a number of days; null means for ever.
    """
    return models.Q(**{f"{than}__isnull": True}) | models.Q(
        **{f"{less}__isnull": False, f"{less}__lte": models.F(than)}
    )


class SuiteQuerySet(models.QuerySet["Suite"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SuiteQuerySet:
        """Return the suites that *user* may see: suites without viewers, or with *user* among the viewers."""
        if not user.is_authenticated or not user.is_active:
            return self.none()
        if sees_all(user):
            return self
        return self.filter(pk__in=visible_suites(user))

    def public(self) -> SuiteQuerySet:
        """Return the suites whose name, title and state visitors see without a login."""
        return self.filter(is_public=True)


class Suite(models.Model):
    """A named group of series. A suite with *viewers* is visible only to these groups and to superusers.

    Runs and their outcomes are kept for ever; ``monitor.depot.retention.apply`` deletes other expired data.
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    title = models.CharField(max_length=200, blank=True)
    viewers = models.ManyToManyField("auth.Group", blank=True)
    is_public = models.BooleanField(
        default=False, db_default=False, help_text="whether the public status page shows it, without a login"
    )
    keep_reports_days = _kept_days("raw reports")
    keep_samples_days = _kept_days("samples")
    keep_hourly_days = _kept_days("hourly rollups")
    keep_daily_days = _kept_days("daily rollups")

    objects = SuiteQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        constraints = [
            models.CheckConstraint(
                condition=_kept_no_longer(than="keep_hourly_days", less="keep_samples_days"),
                name="suite_samples_go_first",
                violation_error_message="Expected hourly rollups to be kept at least as long as samples.",
            ),
            models.CheckConstraint(
                condition=_kept_no_longer(than="keep_daily_days", less="keep_hourly_days"),
                name="suite_hours_go_first",
                violation_error_message="Expected daily rollups to be kept at least as long as hourly ones.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


# ``SuiteQuerySet.visible_to`` for a statement with the row ``series`` and an active user.
VISIBLE = """(%(sees_all)b OR NOT EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers WHERE viewers.suite_id = series.suite_id
) OR EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers
    JOIN monitor_groups(%(user)b, %(identity)b) AS member USING (group_id)
    WHERE viewers.suite_id = series.suite_id))"""


# The same as a subquery of primary keys. Most queries of pages have it, several times: Django would compile
# its parts each time.
_VISIBLE_SUITES = """SELECT suite.id FROM monitor_suite AS suite WHERE NOT EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers WHERE viewers.suite_id = suite.id
) OR EXISTS (
    SELECT FROM monitor_suite_viewers AS viewers JOIN monitor_groups(%s, %s) AS member USING (group_id)
    WHERE viewers.suite_id = suite.id)"""


def visible_suites(user: AbstractBaseUser | AnonymousUser) -> RawSQL:
    """Return the suites that *user*, active and without ``sees_all``, may see, for a condition with IN."""
    return RawSQL(_VISIBLE_SUITES, [user.pk, identity_of(user)])  # noqa: S611  # a constant statement with a parameter


# The parameters of ``VISIBLE`` for readers without a login: suites without viewers.
OF_THE_PUBLIC: Mapping[str, object] = {"user": None, "identity": None, "sees_all": False}


def visibility(user: AbstractBaseUser | AnonymousUser) -> Mapping[str, object]:
    """Return the parameters of ``VISIBLE``; *user* must be logged in and active."""
    return {"user": user.pk, "identity": identity_of(user), "sees_all": sees_all(user)}


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


class Binding(models.Model):
    """The binding of one resource in one role of a series.

    *position* is the place of the resource in the role, for example in a ring.
    """

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
