"""Notifications are delivered at least once, in order, and no broken channel delays the others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from kombu.exceptions import OperationalError

from monitor import tasks
from monitor.analysis.alerts.deliver import MAX_ATTEMPTS, deliver_due, dispatch_due
from monitor.celery import app
from monitor.core.db.advisory_locks import AdvisoryLock
from monitor.core.egress.backoff import FIRST_PAUSE, pause_after
from monitor.models import Alert, AlertRule, Notification, Series
from monitor.models.alert import Event
from monitor.operations.gridfile import entries
from monitor.operations.gridfile.definition import AlertDefinition
from tests.monitor.receivers import ACCEPTS, HANGS, REFUSES, Hook, hook
from tests.waiting import eventually

SECOND = timedelta(seconds=1)


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as running_hook:
        yield running_hook


@pytest.fixture
def alert(circle: Series, noon: datetime) -> Alert:
    rule = AlertRule.objects.create(name="three", everything=True, condition="failures_in_row", threshold=3)
    return Alert.objects.create(rule=rule, series=circle, since=noon, opened_at=noon, text="it is down")


def to(alert: Alert, channel: Any, event: str = Event.OPENED) -> Notification:
    return Notification.objects.create(alert=alert, event=event, channel=channel, due_at=alert.opened_at)


def test_a_due_notification_is_delivered_once(alert: Alert, server: Hook, noon: datetime) -> None:
    notification = to(alert, server.channel)
    assert deliver_due(noon) == 1
    assert deliver_due(noon + SECOND) == 0
    notification.refresh_from_db()
    assert (notification.sent_at, notification.due_at, notification.attempts, notification.error) == (
        noon,
        None,
        1,
        "",
    )
    assert [data["text"] for data in server.data()] == ["it is down"]


def test_a_message_links_to_the_page_of_alerts(alert: Alert, server: Hook, noon: datetime) -> None:
    to(alert, server.channel)
    with override_settings(GRIDCAST_URL="https://gridcast.example.org"):
        deliver_due(noon)
    assert server.data()[0]["url"] == "https://gridcast.example.org/alerts/"


def test_a_refused_message_is_retried_with_back_off_and_then_given_up(
    alert: Alert, server: Hook, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    notification = to(alert, server.channel)
    server.mode, now = REFUSES, noon
    for attempt in range(1, MAX_ATTEMPTS + 1):
        assert deliver_due(now - SECOND) == 0
        assert deliver_due(now) == 1
        now += pause_after(attempt)
    notification.refresh_from_db()
    assert notification.is_given_up
    assert notification.attempts == MAX_ATTEMPTS
    assert notification.error == f"http://{server.address} answered 503: come back later"
    assert "cannot deliver three: circle opened, webhook (given up)" in caplog.text
    server.mode = ACCEPTS
    assert deliver_due(now + timedelta(days=30)) == 0


def test_all_attempts_take_hours() -> None:
    in_all = sum(map(pause_after, range(1, MAX_ATTEMPTS)), timedelta())
    assert timedelta(hours=2) < in_all < timedelta(hours=6)


def test_the_closing_of_an_alert_is_not_delivered_before_its_opening(
    alert: Alert, server: Hook, noon: datetime
) -> None:
    to(alert, server.channel)
    to(alert, server.channel, Event.CLOSED)
    server.mode = REFUSES
    assert deliver_due(noon) == 1
    server.mode = ACCEPTS
    assert deliver_due(noon + SECOND) == 0
    deliver_due(noon + FIRST_PAUSE)
    assert [data["event"] for data in server.data()] == ["opened", "closed"]


def test_a_broken_channel_does_not_delay_the_others(alert: Alert, server: Hook, noon: datetime) -> None:
    for broken in ({"kind": "pigeon"}, {"kind": "webhook"}, {"kind": "webhook", "url": 7}, {"kind": "base"}):
        to(alert, broken)
    to(alert, server.channel)
    assert deliver_due(noon) == 5
    assert len(server.received()) == 1
    errors = Notification.objects.filter(sent_at=None).order_by("pk").values_list("error", flat=True)
    assert list(errors) == [
        "kind: there is no channel 'pigeon'; known are email, log, webhook",
        "url: expected a URL such as https://hooks.example.org/gridcast, got ''",
        "url: expected a text, got 7",
        "kind: there is no channel 'base'; known are email, log, webhook",
    ]


def test_a_channel_that_hangs_is_abandoned_at_its_time_limit(
    alert: Alert, server: Hook, noon: datetime
) -> None:
    notification = to(alert, server.channel)
    server.mode = HANGS
    assert deliver_due(noon, limit_seconds=0.1) == 1
    notification.refresh_from_db()
    assert (notification.error, notification.due_at) == (
        "webhook did not accept the message within 0.1 s",
        noon + FIRST_PAUSE,
    )


def test_a_notification_claimed_by_a_worker_that_died_is_delivered_by_the_next(
    alert: Alert, server: Hook, noon: datetime
) -> None:
    notification = to(alert, server.channel)
    Notification.objects.update(attempts=1, due_at=noon + FIRST_PAUSE)  # as it leaves it
    assert deliver_due(noon + FIRST_PAUSE) == 1
    notification.refresh_from_db()
    assert notification.sent_at is not None


def test_a_task_is_sent_only_if_a_notification_is_due(alert: Alert, server: Hook, noon: datetime) -> None:
    calls: list[int] = []
    dispatch_due(noon, lambda: calls.append(1))
    assert not calls
    to(alert, server.channel)
    dispatch_due(noon - SECOND, lambda: calls.append(1))
    assert not calls
    dispatch_due(noon, lambda: calls.append(1))
    assert calls


def test_the_task_goes_to_the_queue_of_the_control_worker(alert: Alert, server: Hook, noon: datetime) -> None:
    to(alert, server.channel)
    with app.connection_for_read() as broker, broker.SimpleQueue("control") as queue:
        queue.clear()
        dispatch_due(noon)
        message = queue.get(timeout=10)
        message.ack()
    assert message.headers["task"] == tasks.notify.name
    tasks.notify()
    assert len(server.received()) == 1


def test_an_unavailable_broker_does_not_stop_the_tick(
    alert: Alert, server: Hook, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise OperationalError("connection refused")

    to(alert, server.channel)
    with caplog.at_level(logging.WARNING):
        dispatch_due(noon, away)
    assert "cannot dispatch notifications, the next tick retries: connection refused" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_one_worker_delivers_at_a_time_and_holds_no_transaction_open(
    alert: Alert, server: Hook, noon: datetime
) -> None:
    to(alert, server.channel)
    server.mode = HANGS

    def send() -> None:
        try:
            deliver_due(noon)
        finally:
            connection.close()

    first = threading.Thread(target=send)
    first.start()
    try:
        assert eventually(somebody_sends)
        assert deliver_due(noon + timedelta(days=1)) == 0
        assert not in_a_transaction()
    finally:
        server.over.set()  # it hangs up
        first.join()
    assert Notification.objects.get().error.startswith(f"cannot post to http://{server.address}")


def somebody_sends() -> bool:
    return Notification.objects.filter(attempts=1).exists() and bool(
        _ask(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted",
            [AdvisoryLock.NOTIFICATIONS],
        )
    )


def in_a_transaction() -> int:
    return _ask(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND state = 'idle in transaction'",
        [],
    )


def _ask(query: str, parameters: list[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return int(cursor.fetchone()[0])


def test_a_channel_that_asks_for_an_hour_gets_nothing_for_an_hour(
    alert: Alert, server: Hook, noon: datetime
) -> None:
    hour = timedelta(hours=1)
    server.mode, server.answer = REFUSES, (429, {"Retry-After": "3600"})
    opened = to(alert, server.channel)
    rule = AlertRule.objects.create(name="other", everything=True, condition="failures_in_row", threshold=2)
    other = Alert.objects.create(
        rule=rule, series=alert.series, since=noon, opened_at=noon, text="it is down, too"
    )
    to(other, {**server.channel, "secret_variable": ""})  # another channel to the same receiver
    assert deliver_due(noon) == 1
    assert deliver_due(noon + hour - SECOND) == 0
    opened.refresh_from_db()
    assert opened.due_at is not None
    assert opened.due_at >= noon + hour
    server.mode = ACCEPTS
    assert deliver_due(noon + hour + SECOND) == 2


def test_a_channel_whose_receiver_is_gone_is_disabled_until_the_rule_is_saved(
    alert: Alert, server: Hook, noon: datetime, admin_client: Client, admin_user: User
) -> None:
    AlertRule.objects.update(notify=[server.channel])
    server.mode, server.answer = REFUSES, (410, {})
    first = to(alert, server.channel)
    assert deliver_due(noon) == 1
    first.refresh_from_db()
    assert first.is_given_up
    second = to(alert, server.channel, Event.REPEATED)
    assert deliver_due(noon + SECOND) == 0
    second.refresh_from_db()
    assert "disabled until the rule is saved again" in second.withheld
    answer = f"http://{server.address} answered 410"
    for page in ("/settings/alerts/", "/settings/alerts/edit/three/"):
        assert answer in admin_client.get(page).content.decode(), page
    (shown,) = admin_client.get("/api/v1/alert-rules/three").json()["disabled_channels"]
    assert shown["number"] == 0
    assert answer in shown["answer"]
    definition = entries.find("alerts", "three")
    assert isinstance(definition, AlertDefinition)
    renamed = replace(definition, title="t")
    entries.save("alerts", entries.seen_entry("alerts", definition), renamed, author=admin_user)
    server.mode = ACCEPTS
    to(alert, server.channel, Event.REPEATED)
    assert deliver_due(noon + SECOND) == 1
    assert admin_client.get("/api/v1/alert-rules/three").json()["disabled_channels"] == []
