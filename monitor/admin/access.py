"""The admin page of the audit record. Accounts, roles and tokens have pages that ask for confirmation."""

from __future__ import annotations

from django.contrib import admin

from monitor.admin.base import ReadOnly
from monitor.models import AuditEvent


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnly):
    list_display = ("last_at", "outcome", "repeats", "user", "channel", "action", "target", "address")
    list_filter = ("outcome", "channel")
