"""Channels are told again of an open alert, as its rule asks, until it is acknowledged or resolved."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User

from monitor.models import Alert, Notification, Series
from tests.monitor.analysis.alerts.test_group import MINUTE, messages, rule, watch
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import HOUR, ran, runs
from tests.monitor.receivers import Hook

HALF = timedelta(minutes=30)


def test_a_channel_is_told_again_once_for_an_incident(grid: dict[str, Series], server: Hook) -> None:
    rule("two", "failures_in_row", 2, server.channel, repeat_seconds=1800, severity="critical")
    runs(grid, ["a-1", "a-2"], "xx")
    watch(NOON)
    watch(NOON + HALF - MINUTE)
    assert messages(server) == [("opened", "a-1")]
    watch(NOON + HALF)
    watch(NOON + HALF + MINUTE)
    assert messages(server) == [("opened", "a-1"), ("repeated", "a-1")]
    assert {content["severity"] for content in server.data()} == {"critical"}
    watch(NOON + 2 * HALF)
    assert messages(server)[2:] == [("repeated", "a-1")]


def test_nothing_is_told_again_of_an_alert_that_is_acknowledged_or_resolved(
    grid: dict[str, Series], server: Hook
) -> None:
    rule("two", "failures_in_row", 2, server.channel, repeat_seconds=1800)
    runs(grid, ["a-1"], "xx")
    watch(NOON)
    Alert.objects.acknowledge(User.objects.create_superuser("ada").username, NOON + MINUTE)
    watch(NOON + HALF)
    assert messages(server) == [("opened", "a-1")]
    Alert.objects.update(acknowledged_at=None)
    Notification.objects.create(
        alert=Alert.objects.get(), event="repeated", channel=server.channel, due_at=NOON + HALF + MINUTE
    )
    ran(grid, ["a-1"], ".", NOON + HOUR)
    watch(NOON + HOUR)
    assert messages(server) == [("opened", "a-1"), ("closed", "a-1")]


def test_a_rule_that_asks_for_it_not_is_told_once(grid: dict[str, Series], server: Hook) -> None:
    rule("two", "failures_in_row", 2, server.channel)
    runs(grid, ["a-1"], "xx")
    watch(NOON)
    watch(NOON + 10 * HOUR)
    assert messages(server) == [("opened", "a-1")]
