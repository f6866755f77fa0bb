"""Sites and their resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.expressions import RawSQL

from monitor.models.binding import Binding
from monitor.models.natural_order import sort_name_field
from monitor.models.role import UserRole, identity_of, roles_of
from monitor.models.suite import visible_suites
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MOST_NOTES = 4000  # characters
MOST_CONTACTS = 20
OPERATE = "monitor.run_series"  # permission to start and stop runs, and to see to alerts, at every site


def bound_site(user: AbstractBaseUser | AnonymousUser) -> int | None:
    """Return the key of the site to which the token of *user* is bound: it may change nothing elsewhere."""
    return getattr(user, "bound_site", None)


def may_manage_everywhere(user: AbstractBaseUser | AnonymousUser, permission: str = OPERATE) -> bool:
    """Return whether *user* has *permission* at every site: by itself, and by the token of its request."""
    return bound_site(user) is None and bool(getattr(user, "has_perm", _never)(permission))


def may_manage_somewhere(user: AbstractBaseUser | AnonymousUser, permission: str = OPERATE) -> bool:
    """Return whether *user* has *permission*, or is a site admin: a queryset says at which sites."""
    return bool(getattr(user, "has_perm", _never)(permission)) or UserRole.SITE_ADMIN in roles_of(user)


def own_sites(user: AbstractBaseUser | AnonymousUser) -> RawSQL:
    """Return the sites of which *user* is a site admin, for a condition with IN."""
    return RawSQL("SELECT site_id FROM monitor_own_sites(%s, %s)", [user.pk, identity_of(user)])


def _never(_permission: str) -> bool:
    return False


def check_contacts(contacts: Any) -> None:
    """Raise ValidationError unless *contacts* is a list of objects with the texts ``name`` and ``email``."""
    is_valid = isinstance(contacts, list) and all(
        isinstance(contact, dict)
        and contact.keys() == {"name", "email"}
        and all(isinstance(text, str) for text in contact.values())
        for contact in contacts
    )
    if not is_valid:
        raise ValidationError('Expected a list such as [{"name": "Help desk", "email": ""}].')


class SiteQuerySet(models.QuerySet["Site"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SiteQuerySet:
        """Return the sites at which *user* may see a series, and the own sites of a site admin."""
        if sees_all(user):
            return self
        with_series = self.with_series_visible_to(user)
        if UserRole.SITE_ADMIN not in roles_of(user):
            return with_series
        return with_series | self.filter(pk__in=own_sites(user))

    def with_series_visible_to(self, user: AbstractBaseUser | AnonymousUser) -> SiteQuerySet:
        """Return the sites at which *user* may see a series; all sites to a user who sees all series."""
        if sees_all(user):
            return self
        # By resource: PostgreSQL would look for the resources of each site among all of them.
        return self.filter(pk__in=Resource.objects.visible_to(user).order_by().values("site"))

    def public(self) -> SiteQuerySet:
        """Return the sites whose name, title, state and availability visitors see without a login."""
        return self.filter(is_public=True)

    def manageable_by(
        self, user: AbstractBaseUser | AnonymousUser, permission: str = OPERATE
    ) -> SiteQuerySet:
        """Return the sites at which *user* may do what *permission* permits at all sites.

        These are all sites with *permission*, and the own sites of a site admin; at most the one to which the
        token of the request is bound.
        """
        if may_manage_everywhere(user, permission):
            return self
        bound = bound_site(user)
        sites = self if bound is None else self.filter(pk=bound)
        if getattr(user, "has_perm", _never)(permission):
            return sites
        if UserRole.SITE_ADMIN not in roles_of(user):
            return self.none()
        return sites.filter(pk__in=own_sites(user))


class ResourceQuerySet(models.QuerySet["Resource"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ResourceQuerySet:
        """Return the resources of the series that *user* may see."""
        if sees_all(user):
            return self
        return self.filter(has_row(_visible_bindings(user).filter(resource=models.OuterRef("pk"))))

    def sites_by_name(self, names: Iterable[str]) -> dict[str, str]:
        """Return the site of each resource of *names* that exists; runs may name others."""
        return dict(self.filter(name__in=set(names)).values_list("name", "site__name"))


def _visible_bindings(user: AbstractBaseUser | AnonymousUser) -> models.QuerySet[Binding]:
    """Return the bindings of the series visible to *user*, without the permission to see all.

    Looked up from a binding to its suite: a set of all visible series would be made for a single place.
    """
    if not user.is_authenticated or not user.is_active:
        return Binding.objects.none()
    return Binding.objects.filter(series__suite__in=visible_suites(user)).order_by()


class Site(models.Model):
    """An organisation that takes part in the grid."""

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    title = models.CharField(max_length=200, blank=True)
    latitude = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-90), MaxValueValidator(90)],
        help_text="degrees, north positive; with the longitude, the place of the site on the map",
    )
    longitude = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-180), MaxValueValidator(180)],
        help_text="degrees, east positive",
    )
    is_public = models.BooleanField(
        default=False, db_default=False, help_text="whether the public status page shows it, without a login"
    )
    runs_at_once = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="how many runs may use the site at the same time; empty: unlimited"
    )
    runs_per_day = models.PositiveIntegerField(
        null=True, blank=True, help_text="how many runs may use the site per day (UTC); empty: unlimited"
    )
    bytes_per_day = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="bytes that the site sends and receives per day (UTC); empty: unlimited",
    )
    cpu_hours_per_day = models.FloatField(
        null=True,
        blank=True,
        help_text="CPU-hours of batch jobs per day (UTC); empty: unlimited",
    )
    notes = models.TextField(
        blank=True,
        db_default="",
        max_length=MOST_NOTES,
        help_text="what operators should know; plain text, shown on the site's page",
    )
    contacts = models.JSONField(
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        validators=[check_contacts],
        help_text='whom to ask, e.g. [{"name": "Help desk", "email": "help@example.org"}]',
    )

    objects = SiteQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(cpu_hours_per_day__gte=0),
                name="site_cpu_hours_not_negative",
                violation_error_message="Expected CPU-hours per day of at least 0, or none.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class SiteAdministrator(models.Model):
    """A site that a user with the role ``site_admin`` manages."""

    site = models.ForeignKey(Site, models.CASCADE, related_name="administrators")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="administered_sites")

    class Meta:
        ordering = ["site__name", "user__username"]
        constraints = [models.UniqueConstraint(fields=["site", "user"], name="site_administrator_once")]

    def __str__(self) -> str:
        return f"{self.user} at {self.site}"


class Resource(models.Model):
    """A host of a site, and how to reach it."""

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="resources")
    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    scratch = models.CharField(max_length=500, help_text="absolute path of a directory on the resource")
    shell = models.JSONField(default=dict, help_text='e.g. {"kind": "ssh", "host": "login.example.org"}')
    transfer = models.JSONField(default=dict, help_text='e.g. {"kind": "ssh"}')
    batch = models.JSONField(default=dict, help_text='e.g. {"kind": "fork"}')
    address = models.CharField(
        max_length=253, blank=True, help_text="host name or IP address under which other sites reach it"
    )

    storage = models.JSONField(
        default=dict,
        blank=True,
        db_default=models.Value({}, models.JSONField()),
        help_text='its storage, e.g. {"medium": "flash", "capacity_gb": 960, "price": 400}; docs/storage.md',
    )

    objects = ResourceQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]

    def __str__(self) -> str:
        return self.name
