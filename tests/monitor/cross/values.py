"""Values of columns: those that registries and enumerations know, and one of each type."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.apps import apps
from django.db import models
from django.utils import timezone

import probes
from monitor.analysis.alerts import conditions, reporter_conditions
from monitor.analysis.attribution.culprits import PartKind
from monitor.models import Alert, Attribution, Hold, Incident, Notification, Series, Suite, WebhookDelivery
from monitor.models.hold import HoldKind, HoldMode
from monitor.models.incident import MONITOR, REPORTER, SERIES
from monitor.models.run import PLANNED
from monitor.models.series import Follows
from monitor.models.webhook import DeliveryState, EventType

NOBODY = "gone-long-ago"  # the name of what was deleted
GONE: Mapping[str, Any] = {"UUIDField": uuid.UUID(int=1), "BigIntegerField": 2**40}


def all_conditions() -> list[str]:
    return [*conditions.names(), *reporter_conditions.names()]


# By model and column: the kinds of a text that no choices list.
DOMAINS: Mapping[tuple[str, str], Callable[[], Sequence[Any]]] = {
    ("AlertRule", "condition"): all_conditions,
    ("Attribution", "name"): lambda: [NOBODY],
    ("AuditEvent", "user"): lambda: [NOBODY, ""],
    ("Hold", "name"): lambda: [NOBODY],
    ("Incident", "assigned_to"): lambda: [NOBODY, ""],
    ("Incident", "condition"): lambda: [*all_conditions(), ""],
    ("Run", "failed_resource"): lambda: [NOBODY, ""],
    ("Run", "stage"): lambda: [NOBODY, ""],
    ("Run", "trigger"): lambda: [*PLANNED, f"asked for by {NOBODY}: why"],
    ("Series", "probe"): lambda: [*probes.names(), "reported", "import-lines", NOBODY],
    ("Webhook", "events"): lambda: [[each] for each in EventType.values],
}


def _incidents(_: models.Model) -> Iterator[Mapping[str, Any]]:
    """Every kind of the part at fault, open and resolved, with the name of one and of one that is gone."""
    names = _Names()
    kinds = [*PartKind, MONITOR, REPORTER, SERIES, "at", ""]
    for kind, name, is_open in itertools.product(kinds, (None, NOBODY), (True, False)):
        named = (name or names.of(kind)) if kind else ""
        resolved = {} if is_open else {"resolved_at": timezone.now(), "resolution": "ended"}
        yield {"kind": str(kind), "name": named, "signature_id": None, "resolved_at": None, **resolved}


def _holds(_: models.Model) -> Iterator[Mapping[str, Any]]:
    now, names = timezone.now(), _Names()
    ends: Sequence[Mapping[str, Any]] = [
        {},
        {"until": now + timedelta(hours=1)},
        {"until": now - timedelta(minutes=1)},
        {"ended_at": now, "ended_by": "chief", "ended_why": "done"},
        {"ended_at": now, "ended_by": "", "ended_why": ""},
    ]
    for kind, mode, end in itertools.product(HoldKind.values, HoldMode.values, ends):
        yield {"kind": kind, "mode": mode, "name": names.of(kind), "ended_at": None, **end}


def _alerts(_: models.Model) -> Iterator[Mapping[str, Any]]:
    """Alerts of each condition, of a series or a reporter: open, closed, acknowledged and silenced."""
    series, reporter, rule = (apps.get_model("monitor", name) for name in ("Series", "Reporter", "AlertRule"))
    silenced = apps.get_model("monitor", "Incident").objects.filter(silenced_until__gt=timezone.now()).first()
    now = timezone.now()
    for name in all_conditions():
        is_of_series = name in conditions.names()
        of = {
            "rule_id": _row(rule, condition=name),
            "series_id": _row(series, probe="circle") if is_of_series else None,
            "reporter_id": None if is_of_series else _row(reporter, site__isnull=False),
        }
        for state in (
            {"incident_id": None},
            {"closed_at": now, "closed_text": "well again"},
            {"acknowledged_at": now, "acknowledged_by": NOBODY},
            {"incident_id": silenced.pk if silenced else None},
        ):
            yield {**of, **state}


def _deliveries(_: models.Model) -> Iterator[Mapping[str, Any]]:
    now = timezone.now()
    for state in DeliveryState:
        ends = (
            {"due_at": now, "ended_at": None}
            if state == DeliveryState.PENDING
            else {"due_at": None, "ended_at": now}
        )
        yield {"state": state.value, **ends}


def _series(example: models.Model) -> Iterator[Mapping[str, Any]]:
    """One that follows another in each way, and one without a schedule."""
    for way in Follows:
        yield {"follows": way.value, "leader_id": example.pk, "schedule": ""}
    yield {"schedule": ""}


def _suites(_: models.Model) -> Iterator[Mapping[str, Any]]:
    """One whose data are kept for a while, the coarser ones longer."""
    yield {"keep_samples_days": 1, "keep_hourly_days": 2, "keep_daily_days": 3}


def _notifications(_: models.Model) -> Iterator[Mapping[str, Any]]:
    yield {"alert_id": None, "incident_id": _row(Incident)}


def _attributions(_: models.Model) -> Iterator[Mapping[str, Any]]:
    names = _Names()
    for kind, ended in itertools.product(PartKind, (None, timezone.now())):
        yield {"kind": kind.value, "name": names.of(kind), "ended_at": ended}


# Columns that are changed together, by model.
JOINT: Mapping[type[models.Model], Callable[[models.Model], Iterator[Mapping[str, Any]]]] = {
    Alert: _alerts,
    Attribution: _attributions,
    Hold: _holds,
    Series: _series,
    Suite: _suites,
    WebhookDelivery: _deliveries,
    Incident: _incidents,
    Notification: _notifications,
}


def _row(model: Any, **fields: Any) -> Any:
    """Return the key of a row of *model* with these *fields*; the newest, which fewer others name."""
    return model.objects.filter(**fields).order_by("-pk").values_list("pk", flat=True).first()


class _Names:
    """The names of things by kind, one after the other: most may be named once only by what is open."""

    def __init__(self) -> None:
        self._left: dict[str, Iterator[str]] = {}

    def of(self, kind: str) -> str:
        """Return the name of a thing of this *kind*; of a part of the grid, of a site, or of two."""
        if kind == PartKind.EDGE:
            return f"{self.of(PartKind.SITE)}>{self.of(PartKind.SITE)}"
        model = kind if kind in HoldKind.values else "site"
        if model not in self._left:
            rows = apps.get_model("monitor", model).objects.order_by("pk")
            self._left[model] = itertools.cycle(list(rows.values_list("name", flat=True)))
        return next(self._left[model])


def value_of(column: Any) -> Any:
    """Return a value of *column*, which is not null."""
    kind = column.get_internal_type()
    if column.is_relation:
        return column.related_model._base_manager.values_list("pk", flat=True).first()
    if column.choices:
        return column.flatchoices[0][0]
    values: Mapping[str, Any] = {
        "DateTimeField": timezone.now(),
        "DateField": timezone.now().date(),
        "FloatField": 1.5,
        "BooleanField": True,
        "UUIDField": uuid.UUID(int=7),
        "JSONField": {},
        "ArrayField": [],
        "BinaryField": b"",
        "CharField": "text",
        "SlugField": "text",
        "TextField": "text",
    }
    return values.get(kind, 1)
