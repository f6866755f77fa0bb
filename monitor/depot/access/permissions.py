"""The permissions that pages and API ask for, which administrators grant one by one beside the roles.

Django has four for each model; most of them are asked for nowhere. A test finds a new one in the code.
"""

from __future__ import annotations

from monitor.depot.access.tokens import ENTRIES
from monitor.models.alert import CHANGE_RULES
from monitor.models.audit_event import VIEW_AUDIT
from monitor.models.maintenance_window import CHANGE_WINDOWS
from monitor.models.own_signature import MANAGE_SIGNATURES
from monitor.models.reporter import MANAGE_REPORTERS, SEND_REPORTS
from monitor.models.site import OPERATE
from monitor.models.webhook import MANAGE_WEBHOOKS

ASKED_FOR = frozenset(
    {
        OPERATE,
        CHANGE_RULES,
        CHANGE_WINDOWS,
        MANAGE_REPORTERS,
        MANAGE_SIGNATURES,
        MANAGE_WEBHOOKS,
        SEND_REPORTS,
        VIEW_AUDIT,
        "monitor.add_outcome",
        "monitor.view_outcome",
        *(f"monitor.{verb}_{noun}" for verb in ("add", "change", "delete") for noun in ENTRIES),
    }
)
