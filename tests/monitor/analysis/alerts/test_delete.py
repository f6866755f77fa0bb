"""A rule is deleted with its alerts and messages in a few statements, however many they are."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.db import connection
from django.db.models import CASCADE
from django.test.utils import CaptureQueriesContext

from monitor.models import Alert, AlertRule, Notification, Series
from monitor.operations.gridfile import entries

pytestmark = pytest.mark.django_db


def ended_alerts(name: str, count: int, series: Series, now: datetime) -> None:
    rule = AlertRule.objects.create(name=name, condition="failures_in_row", threshold=3)
    rule.series.add(series)
    ended = {"since": now, "opened_at": now, "closed_at": now}
    alerts = Alert.objects.bulk_create([Alert(rule=rule, series=series, **ended) for _ in range(count)])
    Notification.objects.bulk_create(
        Notification(alert=alert, event=event, channel={"kind": "log"}, sent_at=now)
        for alert in alerts
        for event in ("opened", "closed")
    )


def statements_to_delete(name: str) -> int:
    seen = entries.seen_entry("alerts", entries.find("alerts", name))
    with CaptureQueriesContext(connection) as captured:
        entries.remove("alerts", name, seen, who="ada")
    return len(captured)


def test_the_statements_do_not_depend_on_how_many_alerts_there_are(circle: Series, noon: datetime) -> None:
    for name, count in (("few", 2), ("many", 1_200), ("kept", 3)):
        ended_alerts(name, count, circle, noon)
    assert statements_to_delete("many") == statements_to_delete("few")
    assert set(Alert.objects.values_list("rule__name", flat=True)) == {"kept"}
    assert Notification.objects.count() == 6


def test_nothing_but_messages_is_deleted_with_an_alert() -> None:
    """``AlertRuleQuerySet.delete`` relies on it."""
    followers = [each for each in Alert._meta.related_objects if each.on_delete is CASCADE]
    assert [each.related_model for each in followers] == [Notification]
    assert Alert._meta.related_objects == tuple(followers)
