"""Suites, and which of them, and of their series, a user may see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.expressions import RawSQL

from monitor.models.natural_order import sort_name_field
from monitor.models.role import identity_of
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_DAYS = 36_500  # a century


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
