"""Alerts about remote reporters open and close once, by default rules or by rules of one's own."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction
from pytest_django import DjangoAssertNumQueries

from monitor import tasks
from monitor.analysis.alerts.deliver import deliver_due
from monitor.analysis.alerts.evaluate import evaluate
from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.models import Alert, AlertRule, Notification, Reporter, ReporterKey, ReporterStatus, Series
from monitor.models.alert import Event
from monitor.models.chain import Disposition
from reporters.spool.notes import DroppedNote
from tests.monitor import reporter_rows
from tests.monitor.receivers import hook

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOOK = [{"kind": "webhook", "url": "https://hooks.example.org/"}]


@pytest.fixture
def ncsa(db: None, noon: datetime) -> Reporter:
    """An enrolled reporter whose last exchange was at noon."""
    reporter = reporter_rows.enrolled("ncsa", noon - 24 * HOUR)
    reporter_rows.status(reporter, noon)
    return reporter


def says(reporter: Reporter, **fields: Any) -> None:
    ReporterStatus.objects.filter(reporter=reporter).update(**fields)


def dropped(reporter: Reporter, at: datetime, text: str) -> None:
    chain = reporter_rows.chain(reporter, at)
    reporter_rows.record(chain, 0, at, kind="dropped", disposition=Disposition.NOTE, text=text)


def note(first: int, last: int) -> str:
    return DroppedNote(uuid.uuid4(), first, last, "too old").to_body().decode()


def rule(name: str, condition: str, threshold: int, **fields: Any) -> AlertRule:
    return AlertRule.objects.create(
        name=name, condition=condition, threshold=threshold, **{"everything": True, **fields}
    )


def open_rules() -> list[str]:
    return sorted(Alert.objects.open().values_list("rule__name", flat=True))


def test_a_grid_without_remote_reporters_has_no_default_rules(
    circle: Series, noon: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(
        6
    ):  # the lock, rules of operators, the reporters, open alerts; a savepoint
        evaluate_reporters(noon)
    assert not AlertRule.objects.exists()


def test_a_new_grid_has_default_rules_for_remote_reporters(ncsa: Reporter, noon: datetime) -> None:
    evaluate_reporters(noon)
    rules = AlertRule.objects.values_list("condition", "threshold", "is_default", "everything", "notify")
    assert sorted(rules) == [
        ("clock_offset_seconds", 30, True, True, [{"kind": "log"}]),
        ("dropped_records", 1, True, True, [{"kind": "log"}]),
        ("lag_seconds", 600, True, True, [{"kind": "log"}]),
        ("unseen_seconds", 900, True, True, [{"kind": "log"}]),
    ]
    assert not Alert.objects.exists()


def test_a_silent_reporter_opens_an_alert_and_its_next_exchange_closes_it(
    ncsa: Reporter, noon: datetime
) -> None:
    evaluate_reporters(noon + 14 * MINUTE)
    assert not Alert.objects.exists()
    for minutes in (15, 16, 17):
        evaluate_reporters(noon + minutes * MINUTE)
    alert = Alert.objects.get()
    assert (alert.reporter, alert.series, alert.since, alert.opened_at) == (
        ncsa,
        None,
        noon,
        noon + 15 * MINUTE,
    )
    says(ncsa, seen_at=noon + 18 * MINUTE)
    evaluate_reporters(noon + 18 * MINUTE)
    alert.refresh_from_db()
    assert (alert.closed_at, alert.closed_text) == (
        noon + 18 * MINUTE,
        "exchanged again at 2026-03-01 12:18:00 UTC",
    )
    assert list(Notification.objects.order_by("pk").values_list("event", flat=True)) == [
        Event.OPENED,
        Event.CLOSED,
    ]


def test_lag_drops_and_clock_open_an_alert_each(ncsa: Reporter, noon: datetime) -> None:
    says(ncsa, spool_oldest_at=noon - HOUR, clock_offset_seconds=-90.0, dropped_records=10)
    dropped(ncsa, noon, note(5, 14))
    evaluate_reporters(noon)
    assert open_rules() == ["default-clock-offset-seconds", "default-dropped-records", "default-lag-seconds"]
    texts = " ".join(Alert.objects.values_list("text", flat=True))
    assert "10 records dropped" in texts
    assert "the oldest record in the spool is 1 h 01 min old" in texts  # by the server's clock


def test_a_drop_is_an_alert_for_a_day(ncsa: Reporter, noon: datetime) -> None:
    says(ncsa, dropped_records=1, seen_at=noon + 30 * HOUR)
    dropped(ncsa, noon, note(5, 5))
    evaluate_reporters(noon + 23 * HOUR)
    assert open_rules() == ["default-dropped-records"]
    evaluate_reporters(noon + 24 * HOUR)
    assert open_rules() == []


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"first": "x", "last": 1}', '{"first": 9, "last": 1}']
)
def test_a_note_that_gives_no_range_counts_as_one_record(ncsa: Reporter, noon: datetime, text: str) -> None:
    says(ncsa, dropped_records=1)
    dropped(ncsa, noon, text)
    evaluate_reporters(noon)
    assert Alert.objects.get().text.startswith("1 record dropped")


@pytest.mark.parametrize("offset", [float("nan"), float("inf"), 1e300])
def test_an_absurd_offset_stops_no_evaluation(ncsa: Reporter, noon: datetime, offset: float) -> None:
    says(ncsa, clock_offset_seconds=offset, spool_oldest_at=noon)
    evaluate_reporters(noon + HOUR)
    assert "default-unseen-seconds" in open_rules()


def test_a_reporter_without_an_active_key_is_not_watched(ncsa: Reporter, noon: datetime) -> None:
    evaluate_reporters(noon + HOUR)
    ReporterKey.objects.update(revoked_at=noon + HOUR)
    evaluate_reporters(noon + 2 * HOUR)
    assert Alert.objects.get().closed_text == "no longer watched"
    reporter_rows.remote("sdsc")  # created, not yet enrolled
    evaluate_reporters(noon + 99 * HOUR)
    assert open_rules() == []


def test_a_rule_of_ones_own_replaces_the_default_rule_of_its_condition(
    ncsa: Reporter, noon: datetime
) -> None:
    evaluate_reporters(noon + HOUR)
    assert open_rules() == ["default-unseen-seconds"]
    own = rule("later", "unseen_seconds", 86_400)
    evaluate_reporters(noon + HOUR)
    assert open_rules() == []
    evaluate_reporters(noon + 24 * HOUR)
    assert open_rules() == ["later"]
    AlertRule.objects.filter(pk=own.pk).update(enabled=False)  # so nothing watches for silence
    evaluate_reporters(noon + 25 * HOUR)
    assert open_rules() == []


def test_a_changed_or_disabled_default_rule_stays_so(ncsa: Reporter, noon: datetime) -> None:
    evaluate_reporters(noon)
    AlertRule.objects.filter(condition="unseen_seconds").update(enabled=False)
    AlertRule.objects.filter(condition="lag_seconds").update(threshold=7200)
    says(ncsa, spool_oldest_at=noon - HOUR)
    evaluate_reporters(noon + HOUR)
    assert open_rules() == []
    assert AlertRule.objects.count() == 4


@pytest.mark.parametrize(("watches", "expected"), [("sites", ["ncsa"]), ("reporters", ["sdsc"])])
def test_a_rule_watches_the_reporters_that_it_names(
    ncsa: Reporter, noon: datetime, watches: str, expected: list[str]
) -> None:
    sdsc = reporter_rows.enrolled("sdsc", noon - 24 * HOUR)
    own = rule("own", "unseen_seconds", 60, everything=False, notify=HOOK)
    getattr(own, watches).set([ncsa.site] if watches == "sites" else [sdsc])
    evaluate_reporters(noon + HOUR)
    assert [alert.subject for alert in Alert.objects.open()] == expected
    assert Notification.objects.get().channel == HOOK[0]


def test_a_rule_that_becomes_one_about_reporters_closes_its_alerts_of_series(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    own = rule("own", "failures_in_row", 1)
    Alert.objects.create(rule=own, series=circle, since=noon, opened_at=noon, text="down")
    AlertRule.objects.filter(pk=own.pk).update(condition="unseen_seconds", threshold=900)
    evaluate(noon)
    evaluate_reporters(noon)
    assert not Alert.objects.open().exists()


def test_a_rule_that_becomes_one_about_series_closes_its_alerts_of_reporters(
    circle: Series, ncsa: Reporter, noon: datetime
) -> None:
    own = rule("own", "unseen_seconds", 60)
    evaluate_reporters(noon + HOUR)
    AlertRule.objects.filter(pk=own.pk).update(condition="failures_in_row", threshold=3)
    evaluate(noon + HOUR)
    says(ncsa, seen_at=noon + HOUR)
    evaluate_reporters(noon + HOUR)
    assert not Alert.objects.open().exists()


def test_an_unusable_rule_does_not_stop_the_others(
    ncsa: Reporter, noon: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    rule("too-short", "lag_seconds", 1)
    evaluate_reporters(noon + HOUR)
    assert open_rules() == ["default-unseen-seconds"]
    assert "alert rule too-short is ignored: lag_seconds: expected seconds from 60" in caplog.text


def test_the_number_of_queries_depends_on_neither_reporters_nor_rules(
    ncsa: Reporter, noon: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    evaluate_reporters(noon)
    says(ncsa, dropped_records=1)
    for count in range(2):
        for i in range(20):
            reporter_rows.status(reporter_rows.enrolled(f"r{count}-{i}", noon), noon)
            rule(f"lag-{count}-{i}", "lag_seconds", 600)
        with django_assert_num_queries(11):
            evaluate_reporters(noon)


def test_the_database_refuses_a_second_open_alert_and_an_alert_of_nothing(
    ncsa: Reporter, noon: datetime
) -> None:
    evaluate_reporters(noon + HOUR)
    twin = Alert.objects.get()
    twin.pk = None
    with pytest.raises(IntegrityError, match="alert_of_reporter_open_once"), transaction.atomic():
        twin.save()
    twin.reporter = None
    with pytest.raises(IntegrityError, match="alert_of_a_series_or_a_reporter"), transaction.atomic():
        twin.save()


def test_a_message_names_the_reporter(ncsa: Reporter, noon: datetime) -> None:
    with hook() as receiver:
        rule("own", "unseen_seconds", 60, notify=[receiver.channel])
        evaluate_reporters(noon + HOUR)
        deliver_due(noon + HOUR + MINUTE)
        (message,) = receiver.data()
    assert (message["reporter"], message["series"], message["rule"]) == ("ncsa", "", "own")


def test_the_scheduler_evaluates_reporters(ncsa: Reporter) -> None:
    """The rows of *ncsa* are old: by the clock of the task it is silent."""
    assert tasks.watch_reporters.name in {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    tasks.watch_reporters()
    assert open_rules() == ["default-unseen-seconds"]
