"""Alerts are grouped into incidents, one for each cause, and each channel gets one message for each."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from monitor.analysis.alerts.deliver import deliver_due
from monitor.analysis.alerts.evaluate import evaluate
from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.analysis.alerts.group import group_alerts
from monitor.analysis.alerts.write import GROUP_WAIT
from monitor.analysis.incidents import actions as incident_actions
from monitor.core.egress.backoff import FIRST_PAUSE
from monitor.models import (
    Alert,
    AlertRule,
    Heartbeat,
    Incident,
    Notification,
    Reporter,
    ReporterStatus,
    Run,
    Series,
    Suite,
)
from monitor.models.incident import MONITOR, IncidentAction
from monitor.models.role import UserRole
from monitor.models.run import State
from reporters.report import run_id
from tests.monitor import reporter_rows
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import HOUR, TIMEOUT, ran, runs
from tests.monitor.receivers import ACCEPTS, REFUSES, Hook
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)


def rule(name: str, condition: str, threshold: int, *channels: Any, **fields: Any) -> AlertRule:
    watches = {"everything": True, **fields}
    return AlertRule.objects.create(
        name=name, condition=condition, threshold=threshold, notify=list(channels), **watches
    )


def messages(server: Hook) -> list[tuple[str, str]]:
    """Return the event and the watched thing of each message received so far."""
    contents = server.data()
    return [(each["event"], each["series"] or each["reporter"] or each["cause"]) for each in contents]


def watch(now: datetime) -> None:
    """Do what the service does within half a minute."""
    evaluate(now)
    evaluate_reporters(now)
    group_alerts(now)
    deliver_due(now)


class TestFailedRuns:
    def test_series_that_fail_by_one_cause_are_one_message(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1", "a-2"], "xx")
        watch(NOON)
        incident = Incident.objects.get()
        assert {alert.incident for alert in Alert.objects.all()} == {incident}
        (content,) = server.data()
        assert (content["incident"], content["open_alerts"]) == (incident.pk, 2)
        assert content["cause"] == "No space left on the device, at a"
        ran(grid, ["a-1"], ".", NOON + HOUR)
        watch(NOON + HOUR)
        assert messages(server) == [("opened", "a-1")]
        ran(grid, ["a-2"], ".", NOON + HOUR)
        watch(NOON + HOUR + MINUTE)
        assert messages(server) == [("opened", "a-1"), ("closed", "a-2")]
        assert Notification.objects.pending().count() == 0
        reasons = Notification.objects.exclude(withheld="").values_list("withheld", flat=True)
        assert sorted(reasons) == ["other alerts of the incident are open", "the incident was announced"]

    def test_each_channel_gets_its_own_message(self, grid: dict[str, Series], server: Hook) -> None:
        other = {**server.channel, "url": f"http://{server.address}/other"}
        rule("two", "failures_in_row", 2, server.channel)
        rule("three", "failures_in_row", 3, server.channel, other)
        runs(grid, ["a-1"], "xx")
        watch(NOON)
        ran(grid, ["a-1"], "x", NOON + HOUR)
        watch(NOON + HOUR)
        contents = [(each["rule"], each["event"]) for each in server.data()]
        assert contents == [("two", "opened"), ("three", "opened")]

    def test_an_alert_of_a_single_failure_has_an_incident_of_the_same_kind(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("one", "failures_in_row", 1, server.channel)
        runs(grid, ["a-1"], ".x")
        runs(grid, ["b-1"], ".x")
        watch(NOON)
        assert sorted((row.kind, row.name) for row in Incident.objects.all()) == [("at", "a"), ("at", "b")]

    def test_a_message_waits_a_minute_for_an_incident_and_no_longer(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("one", "failures_in_row", 1, server.channel)
        runs(grid, ["a-1"], ".x")
        evaluate(NOON)
        deliver_due(NOON + GROUP_WAIT - MINUTE / 60)
        assert messages(server) == []
        deliver_due(NOON + GROUP_WAIT)  # though the alert is not grouped yet
        assert messages(server) == [("opened", "a-1")]

    def test_a_series_that_moves_to_another_cause_is_told_again(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1"], "xx")
        watch(NOON)
        for hours in (1, 2, 3):
            ran(grid, ["a-1"], "x", NOON + hours * HOUR, TIMEOUT)
            watch(NOON + hours * HOUR)
        watch(NOON + 3 * HOUR + MINUTE)
        assert messages(server) == [("opened", "a-1"), ("closed", "a-1"), ("opened", "a-1")]
        closed, moved = Alert.objects.order_by("pk")
        assert "fails by another cause" in closed.closed_text
        assert moved.incident == Incident.objects.open().get()

    def test_a_failure_after_a_user_resolved_the_incident_is_told_again(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1"], "xx")
        watch(NOON)
        incident_actions.resolve(Incident.objects.get().pk, "new disk", "ann", NOON + MINUTE)
        watch(NOON + 2 * MINUTE)
        assert len(messages(server)) == 1
        ran(grid, ["a-1"], "x", NOON + HOUR)
        watch(NOON + HOUR)
        watch(NOON + HOUR + MINUTE)
        assert messages(server) == [("opened", "a-1"), ("closed", "a-1"), ("opened", "a-1")]

    def test_alerts_that_join_an_acknowledged_incident_are_acknowledged_and_not_told(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        pager = {**server.channel, "url": f"http://{server.address}/pager"}
        builders.browser_of("ann", UserRole.OPERATOR)
        rule("two", "failures_in_row", 2, server.channel)
        rule("three", "failures_in_row", 3, pager)
        runs(grid, ["a-1"], "xx")
        watch(NOON)
        incident_actions.acknowledge(Incident.objects.get().pk, "ann", NOON + MINUTE)
        ran(grid, ["a-1"], "x", NOON + HOUR)
        watch(NOON + HOUR)
        assert set(Alert.objects.values_list("acknowledged_by", flat=True)) == {"ann"}
        ran(grid, ["a-1"], ".", NOON + 2 * HOUR)
        watch(NOON + 2 * HOUR)
        contents = [(each["rule"], each["event"]) for each in server.data()]
        assert contents == [("two", "opened"), ("two", "closed")]

    def test_a_silenced_incident_is_announced_when_the_silence_ends(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        builders.browser_of("ann", UserRole.OPERATOR)
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1", "b-1"], "xx")
        evaluate(NOON)
        group_alerts(NOON)
        for incident in Incident.objects.all():
            incident_actions.silence(incident.pk, NOON + 2 * HOUR, "", "ann", NOON)
        watch(NOON)
        ran(grid, ["b-1"], ".", NOON + HOUR)  # ends while it is silenced: it is never announced
        watch(NOON + HOUR)
        assert messages(server) == []
        watch(NOON + 2 * HOUR + MINUTE)
        assert messages(server) == [("opened", "a-1")]

    def test_while_the_first_message_is_retried_the_others_wait(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1", "a-2"], "xx")
        server.mode = REFUSES
        watch(NOON)
        assert sorted(Notification.objects.values_list("attempts", flat=True)) == [0, 1]
        server.mode = ACCEPTS
        deliver_due(NOON + FIRST_PAUSE)
        assert len(messages(server)) == 1
        assert Notification.objects.pending().count() == 0

    def test_a_worker_that_died_while_it_sent_loses_no_message(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1", "a-2"], "xx")
        evaluate(NOON)
        group_alerts(NOON)
        first = Notification.objects.order_by("pk")[0]
        Notification.objects.filter(pk=first.pk).update(
            attempts=1, due_at=NOON + FIRST_PAUSE
        )  # as it leaves it
        deliver_due(NOON)
        assert messages(server) == []
        deliver_due(NOON + FIRST_PAUSE)
        assert len(messages(server)) == 1

    def test_grouping_again_changes_nothing(self, grid: dict[str, Series], server: Hook) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        runs(grid, ["a-1", "a-2"], "xx")
        watch(NOON)
        before = list(Incident.objects.values()), list(Alert.objects.values())
        events = Incident.objects.get().events.count()
        group_alerts(NOON + MINUTE)
        assert (list(Incident.objects.values()), list(Alert.objects.values())) == before
        assert Incident.objects.get().events.count() == events


class TestSilence:
    @pytest.fixture
    def ncsa(self, grid: dict[str, Series]) -> Reporter:
        """A remote reporter, last seen at noon, that runs a-1 and a-2."""
        reporter = reporter_rows.enrolled("ncsa", NOON - 24 * HOUR)
        reporter_rows.status(reporter, NOON)
        Series.objects.filter(name__startswith="a-").update(reporter=reporter)
        return reporter

    def missed(self, *names: str) -> None:
        for name in names:
            series = Series.objects.get(name=name)
            slot = NOON + MINUTE
            Run.objects.create(
                id=run_id(name, slot),
                series=series,
                slot=slot,
                due_at=slot,
                state=State.MISSED,
                ended_at=slot,
            )

    def test_a_silent_reporter_and_its_series_are_one_incident_and_one_message(
        self, ncsa: Reporter, server: Hook
    ) -> None:
        rule("silence", "silent_seconds", 300, server.channel)
        rule("unseen", "unseen_seconds", 900, server.channel)
        self.missed("a-1", "a-2")
        watch(NOON + 10 * MINUTE)  # the rule about the reporter is not met yet
        watch(NOON + 20 * MINUTE)
        incident = Incident.objects.get()
        assert str(incident) == "Reporter silent, reporter ncsa"
        assert incident.alerts.count() == 3
        assert messages(server) == [("opened", "a-1")]
        ReporterStatus.objects.update(seen_at=NOON + 30 * MINUTE)
        Run.objects.update(state=State.PASSED)
        watch(NOON + 30 * MINUTE)
        incident.refresh_from_db()
        assert incident.resolution.startswith("the last alert was resolved: ")
        assert [event for event, _ in messages(server)] == ["opened", "closed"]

    def test_a_silent_series_joins_its_reporter_when_this_falls_silent(
        self, ncsa: Reporter, server: Hook
    ) -> None:
        rule("silence", "silent_seconds", 300, server.channel)
        self.missed("a-1")
        ReporterStatus.objects.update(seen_at=NOON + 9 * MINUTE)
        watch(NOON + 10 * MINUTE)
        alone = Incident.objects.get()
        assert (alone.kind, alone.name, alone.title) == ("series", "a-1", "silence")
        watch(NOON + 12 * MINUTE)
        alone.refresh_from_db()
        assert alone.resolution == "its alerts joined another one"
        assert str(Incident.objects.open().get()) == "Reporter silent, reporter ncsa"
        ReporterStatus.objects.update(seen_at=NOON + 13 * MINUTE)
        watch(NOON + 13 * MINUTE)  # it does not move back
        assert Incident.objects.open().get().name == "ncsa"
        assert [event for event, _ in messages(server)] == ["opened"]

    def test_a_dead_home_worker_is_one_incident(self, grid: dict[str, Series], server: Hook) -> None:
        rule("silence", "silent_seconds", 300, server.channel)
        Heartbeat.objects.create(name="reporter.home", seen_at=NOON)
        self.missed("a-1", "b-1", "c-1")
        watch(NOON + 10 * MINUTE)
        assert Incident.objects.get().place == "reporter home"
        assert len(messages(server)) == 1

    def test_other_conditions_of_a_reporter_are_other_incidents(self, ncsa: Reporter) -> None:
        ReporterStatus.objects.update(clock_offset_seconds=4000)
        watch(NOON + 20 * MINUTE)
        assert sorted(Incident.objects.values_list("kind", "name", "condition")) == [
            ("reporter", "ncsa", "clock_offset_seconds"),
            ("reporter", "ncsa", "unseen_seconds"),
        ]

    def test_what_a_user_resolved_is_not_opened_again_by_the_same_silence(
        self, ncsa: Reporter, server: Hook
    ) -> None:
        rule("unseen", "unseen_seconds", 900, server.channel)
        rule("unseen-long", "unseen_seconds", 3600, {**server.channel, "url": f"http://{server.address}/b"})
        watch(NOON + 20 * MINUTE)
        incident_actions.resolve(Incident.objects.get().pk, "retired", "ann", NOON + 21 * MINUTE)
        watch(NOON + 70 * MINUTE)
        assert Incident.objects.get().alerts.count() == 2
        assert len(messages(server)) == 1

    def test_an_incident_of_a_hidden_series_is_hidden(self, ncsa: Reporter, client: Any) -> None:
        rule("silence", "silent_seconds", 300)
        self.missed("a-1")
        ReporterStatus.objects.update(seen_at=NOON + 9 * MINUTE)
        watch(NOON + 10 * MINUTE)
        client.force_login(User.objects.create(username="reader"))
        path = f"/incidents/{Incident.objects.get().pk}/"
        assert "a-1" in client.get(path).content.decode()
        secret = Suite.objects.create(name="secret")
        secret.viewers.create(name="insiders")
        Series.objects.filter(name="a-1").update(suite=secret)
        assert client.get(path).status_code == 404


class TestSuspicion:
    @pytest.fixture(autouse=True)
    def many_sites_fail(self, grid: dict[str, Series], server: Hook) -> None:
        rule("two", "failures_in_row", 2, server.channel)
        rule("log-too", "failures_in_row", 9, server.channel, {"kind": "log"})
        runs(grid, ["a-1", "b-1", "c-1"], "xx")
        watch(NOON)

    def test_one_message_says_so_and_the_others_are_held(self, server: Hook) -> None:
        watch(NOON + MINUTE)
        assert messages(server) == [("opened", "Suspect the monitor: many sites fail at once")]
        (text,) = server.received()
        assert json.loads(text)["data"]["text"] == "3 of 5 sites: a, b, c; their messages are held"
        assert Notification.objects.filter(incident__kind=MONITOR).count() == 2  # each channel once

    def test_when_fewer_sites_fail_those_still_open_are_told(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        ran(grid, ["a-1", "b-1"], ".", NOON + HOUR)
        watch(NOON + HOUR)
        watch(NOON + HOUR + MINUTE)
        assert messages(server)[1:] == [
            ("opened", "c-1"),
            ("closed", "Suspect the monitor: many sites fail at once"),
        ]
        settled = server.data()[-1]
        assert settled["text"] == "fewer sites fail; 2 of 3 held incidents ended meanwhile"
        withheld = Notification.objects.filter(withheld="it ended while the monitor was suspected")
        assert withheld.count() == 4  # of a-1 and b-1, opened and closed

    def test_when_a_user_resolves_it_all_are_told(self, server: Hook) -> None:
        suspect = Incident.objects.get(kind=MONITOR)
        incident_actions.resolve(suspect.pk, "a power cut", "ann", NOON + MINUTE)
        watch(NOON + 2 * MINUTE)
        assert sorted(messages(server)[1:]) == [
            ("closed", "Suspect the monitor: many sites fail at once"),
            ("opened", "a-1"),
            ("opened", "b-1"),
            ("opened", "c-1"),
        ]

    def test_the_end_of_an_alert_that_was_told_before_is_told_afterwards(
        self, grid: dict[str, Series], server: Hook
    ) -> None:
        """Its opening was sent before enough sites failed."""
        opening = Notification.objects.get(alert__series__name="a-1", event="opened")
        Notification.objects.filter(pk=opening.pk).update(sent_at=NOON, attempts=1, due_at=None)
        ran(grid, ["a-1", "b-1"], ".", NOON + HOUR)
        watch(NOON + HOUR)
        assert ("closed", "a-1") in messages(server)
        assert ("closed", "b-1") not in messages(server)

    def test_the_pages_say_what_is_held_and_which_messages_were_sent(self, client: Any) -> None:
        client.force_login(User.objects.create_superuser("root"))
        suspect, held = Incident.objects.get(kind=MONITOR), Incident.objects.get(name="a")
        assert "held" in client.get("/incidents/").content.decode()
        assert "held: the monitor is suspected" in client.get("/alerts/").content.decode()
        page = client.get(f"/incidents/{suspect.pk}/").content.decode()
        assert "notified" in page
        assert "Check the network of the monitor" in page
        assert "opened, webhook: pending" in client.get(f"/incidents/{held.pk}/").content.decode()

    def test_the_timeline_says_which_sites_failed(self) -> None:
        opening = Incident.objects.get(kind=MONITOR).events.get(action=IncidentAction.OPENED)
        assert opening.text == "3 of 5 sites: a, b, c"
