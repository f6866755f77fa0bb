"""Signatures of one's own, made on a page or by a grid file, and the record of their changes."""

from __future__ import annotations

from typing import Any

from django.db import models

from monitor.models.failure_signature import Category, Origin, Severity

MANAGE_SIGNATURES = "monitor.manage_signatures"  # permission to accept, edit and withdraw signatures


class OwnSignature(models.Model):
    """A cause of failures that gridcast does not ship (``monitor.analysis.signatures.signature``).

    Attributes:
        counts_against_site: null: as for other causes of the category.
        origin: what wrote it last, a page or a grid file.
        version: the number of its changes: a form overwrites no change that it has not shown.
        changed_by: the user; empty: a grid file.
    """

    name = models.CharField(max_length=50, unique=True)
    title = models.CharField(max_length=200)
    category = models.CharField(max_length=10, choices=Category.choices)
    severity = models.CharField(max_length=8, choices=Severity.choices)
    patterns = models.JSONField()
    help = models.TextField(blank=True, max_length=2000)
    counts_against_site = models.BooleanField(null=True)
    stages = models.JSONField(default=list)
    tools = models.JSONField(default=list)
    precedence = models.SmallIntegerField(default=0)
    origin = models.CharField(max_length=9, choices=Origin.choices, default=Origin.GRID_FILE)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField(auto_now=True)
    changed_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["name"]
        default_permissions = ()
        permissions = [("manage_signatures", "Can accept, edit and withdraw signatures of failures")]

    def __str__(self) -> str:
        return self.name


class SignatureAction(models.TextChoices):
    ADDED = "added"
    CHANGED = "changed"
    WITHDRAWN = "withdrawn"


class SignatureChange(models.Model):
    """One change of an own signature. It is named, not referenced: it may be withdrawn.

    *before* and *after* are its values, as in a grid file; null: there was none, or is none any more.
    """

    signature = models.CharField(max_length=50)
    action = models.CharField(max_length=9, choices=SignatureAction.choices)
    at = models.DateTimeField()
    user = models.CharField(max_length=150, blank=True, help_text="empty: a grid file")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        ordering = ["-at", "-id"]

    def __str__(self) -> str:
        return f"{self.signature}: {self.action}"

    @property
    def differences(self) -> list[str]:
        """Each value that the change set or removed, as text."""
        before, after = self.before or {}, self.after or {}
        changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
        if self.action != SignatureAction.CHANGED:
            return [f"{key}: {_shown((after or before)[key])}" for key in changed]
        return [f"{key}: {_shown(before.get(key))} → {_shown(after.get(key))}" for key in changed]


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "default" if value is None else str(value)
