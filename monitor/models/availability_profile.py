"""Availability profiles: their present rules, and every version that was ever valid."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from monitor.models.natural_order import sort_name_field
from monitor.models.site import Site


class AvailabilityProfile(models.Model):
    """How the availability of *sites* (empty: all other sites) is computed, as a grid file defines it now.

    ``monitor.analysis.availability.profiles`` describes the rules. Availability is computed by
    ``ProfileVersion``.
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    title = models.CharField(max_length=200, blank=True, help_text="displayed title; empty: the name")
    valid_from = models.DateField(
        null=True, blank=True, help_text="first day of its present version; empty: the day of the change"
    )
    sites = models.ManyToManyField(Site, blank=True, related_name="availability_profiles")
    needs = models.CharField(max_length=3, default="all")
    include = models.JSONField(null=True, blank=True)
    exclude = models.JSONField(null=True, blank=True)
    services = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["sort_name"]

    def __str__(self) -> str:
        return self.title or self.name


class ProfileVersion(models.Model):
    """One version of a profile; a version never changes, and stays when its profile is removed.

    Attributes:
        valid_from: the first day for which it is used, unless a later version is valid.
        site_keys: the sites that it applies to; empty: all that no other profile names.
        rules: null if the profile was removed: from *valid_from* on it applies to no site.
    """

    profile = models.SlugField()
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200, blank=True)
    valid_from = models.DateField()
    created_at = models.DateTimeField()
    site_keys = ArrayField(models.BigIntegerField(), default=list)
    rules = models.JSONField(null=True)

    class Meta:
        ordering = ["profile", "number"]
        constraints = [
            models.UniqueConstraint(fields=["profile", "number"], name="profile_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.profile}-{self.number}"
