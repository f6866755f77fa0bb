"""Signatures that runs refer to, and how far history has been judged by the present ones."""

from __future__ import annotations

from django.db import models

UNKNOWN = "unknown"  # the name of the row for runs that no signature matches


class Category(models.TextChoices):
    """What kind of thing broke (``monitor.analysis.signatures`` decides)."""

    USER = "user"
    CREDENTIAL = "credential"
    MIDDLEWARE = "middleware"
    BATCH = "batch"
    NETWORK = "network"
    RESOURCE = "resource"
    STORAGE = "storage"
    PROBE = "probe"
    UNKNOWN = "unknown"


class Severity(models.TextChoices):
    """Minor failures usually end by themselves, major ones need an operator, critical ones stop a service."""

    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


class Origin(models.TextChoices):
    """Where a signature comes from; a withdrawn one is no longer used."""

    SHIPPED = "shipped"
    GRID_FILE = "grid file"
    PAGE = "page"
    WITHDRAWN = "withdrawn"


class FailureSignature(models.Model):
    """A cause of failures, as it was last used.

    A signature that is no longer used stays, because runs and incidents refer to it.
    """

    name = models.CharField(max_length=50, unique=True)
    title = models.CharField(max_length=200)
    category = models.CharField(max_length=10, choices=Category.choices)
    severity = models.CharField(max_length=8, choices=Severity.choices)
    counts_against_site = models.BooleanField(help_text="whether the adjusted success rate counts it")
    help = models.TextField(blank=True, help_text="what usually removes the cause")
    origin = models.CharField(max_length=9, choices=Origin.choices, default=Origin.SHIPPED)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_unknown(self) -> bool:
        return self.name == UNKNOWN


class JudgedHistory(models.Model):
    """How far failed runs have been judged by the present signatures; at most one row.

    Failed runs with slots before *rejudge_before* are still to be judged again; null: none.
    """

    digest = models.CharField(max_length=64, help_text="of the signatures")
    rejudge_before = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "judged history"

    def __str__(self) -> str:
        return self.digest
