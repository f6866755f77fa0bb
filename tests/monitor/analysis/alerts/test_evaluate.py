"""Alerts open and close with the outcomes of runs, once, however often they are evaluated."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.alerts.evaluate import evaluate
from monitor.models import Alert, AlertRule, Notification, Recheck, Run, Series, Suite
from monitor.models.alert import Event
from monitor.models.run import State
from monitor.runs.ingest.service import ingest
from monitor.runs.ledger import transitions
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap
from reporters import report as wire
from reporters.report import run_id
from tests.monitor.builders import circle_report, failed_circle_report

MINUTE = timedelta(minutes=1)
LOG = [{"kind": "log"}]


def rule(name: str = "three", **fields: Any) -> AlertRule:
    three_failures = {"condition": "failures_in_row", "threshold": 3}
    defaults = {"everything": True, "notify": LOG, **three_failures}
    return AlertRule.objects.create(name=name, **{**defaults, **fields})


def failed(slot: datetime) -> None:
    assert ingest(wire.to_json(failed_circle_report(slot))).accepted


def passed(slot: datetime) -> None:
    assert ingest(wire.to_json(circle_report(slot))).accepted


def ended(series: Series, slot: datetime, state: State) -> Run:
    return Run.objects.create(
        id=run_id(series.name, slot), series=series, slot=slot, due_at=slot, state=state, ended_at=slot
    )


def many(count: int, like: Series) -> list[Series]:
    """Create other series with the same bindings."""
    fields = {"suite": like.suite, "reporter": like.reporter, "probe": "circle"}
    return [Series.objects.create(name=f"ring-{i}", **fields) for i in range(count)]


@pytest.fixture
def three_failures(circle: Series, noon: datetime) -> datetime:
    """Store three failed runs of Circle; return the time after them."""
    for i in range(3):
        failed(noon + i * MINUTE)
    return noon + 3 * MINUTE


def test_three_failures_in_a_row_open_an_alert_and_a_pass_closes_it(
    circle: Series, three_failures: datetime
) -> None:
    rule()
    evaluate(three_failures)
    alert = Alert.objects.get()
    assert (alert.series, alert.since, alert.closed_at) == (circle, three_failures - 3 * MINUTE, None)
    assert alert.opened_by == circle.runs.order_by("slot").last()
    assert "No space left on device" in alert.text
    passed(three_failures)
    evaluate(three_failures + MINUTE)
    alert.refresh_from_db()
    assert alert.closed_at == three_failures + MINUTE
    assert alert.closed_by == circle.runs.get(slot=three_failures)
    assert [notification.event for notification in Notification.objects.order_by("pk")] == [
        Event.OPENED,
        Event.CLOSED,
    ]


def test_evaluating_again_changes_nothing(circle: Series, three_failures: datetime) -> None:
    rule()
    for i in range(3):
        evaluate(three_failures + i * MINUTE)
    failed(three_failures)
    evaluate(three_failures + 5 * MINUTE)
    assert Alert.objects.get().opened_at == three_failures
    assert Notification.objects.count() == 1


@pytest.mark.parametrize("state", [State.SKIPPED, State.NO_DATA])
def test_skipped_runs_and_runs_without_data_do_not_count(
    circle: Series, three_failures: datetime, state: State
) -> None:
    rule()
    ended(circle, three_failures - 90 * MINUTE / 60, state)
    ended(circle, three_failures, state)
    evaluate(three_failures + MINUTE)
    assert Alert.objects.open().exists()


@pytest.mark.parametrize("state", [State.MISSED, State.LOST])
def test_a_late_report_corrects_an_alert(circle: Series, noon: datetime, state: State) -> None:
    rule()
    slots = [noon + i * MINUTE for i in range(3)]
    for slot in slots:
        ended(circle, slot, state)
    evaluate(noon + 3 * MINUTE)
    assert Alert.objects.open().exists()
    passed(slots[1])  # not the newest, but so they are not in a row
    evaluate(noon + 4 * MINUTE)
    alert = Alert.objects.get()
    assert (alert.closed_at, alert.closed_by) == (noon + 4 * MINUTE, circle.runs.get(slot=slots[1]))


def test_a_late_report_that_a_run_was_skipped_corrects_an_alert_too(circle: Series, noon: datetime) -> None:
    rule(condition="failures_in_row", threshold=1)
    run = ended(circle, noon, State.MISSED)
    evaluate(noon + MINUTE)
    transitions.move(Run.objects.all(), [run.pk], State.SKIPPED, cause="reported by home")
    evaluate(noon + 2 * MINUTE)
    assert Alert.objects.get().closed_at == noon + 2 * MINUTE


def test_a_new_rule_evaluates_earlier_runs(circle: Series, three_failures: datetime) -> None:
    evaluate(three_failures)  # no rule exists yet: due rechecks are dropped
    assert not Recheck.objects.exists()
    rule()
    evaluate(three_failures + MINUTE)
    assert Alert.objects.open().exists()


def test_a_changed_rule_is_evaluated_again(circle: Series, three_failures: datetime) -> None:
    alert_rule = rule(condition="failures_in_row", threshold=4)
    evaluate(three_failures)
    assert not Alert.objects.exists()
    AlertRule.objects.update(threshold=2)
    evaluate(three_failures + MINUTE)
    assert Alert.objects.open().exists()
    alert_rule.refresh_from_db()
    alert_rule.everything = False
    alert_rule.save()
    alert_rule.series.set(many(1, circle))
    evaluate(three_failures + 2 * MINUTE)
    assert Alert.objects.get().closed_text == "no longer watched"


@pytest.mark.parametrize("what", [AlertRule, Series])
def test_disabling_closes_open_alerts_and_enabling_opens_them_again(
    circle: Series, three_failures: datetime, what: type[AlertRule] | type[Series]
) -> None:
    rule()
    evaluate(three_failures)
    what._default_manager.update(enabled=False)
    evaluate(three_failures + MINUTE)
    assert Alert.objects.get().closed_at == three_failures + MINUTE
    what._default_manager.update(enabled=True)
    failed(three_failures + MINUTE)
    evaluate(three_failures + 2 * MINUTE)
    assert Alert.objects.open().count() == 1


def by_suite(alert_rule: AlertRule, series: Series) -> None:
    alert_rule.suites.set([series.suite])


def by_site(alert_rule: AlertRule, series: Series) -> None:
    alert_rule.sites.set([series.bindings.earliest("pk").resource.site])


def by_name(alert_rule: AlertRule, series: Series) -> None:
    alert_rule.series.set([series])


def by_probe(alert_rule: AlertRule, series: Series) -> None:
    alert_rule.probes = [series.probe]
    alert_rule.save()


@pytest.mark.parametrize("name", [by_suite, by_site, by_name, by_probe])
def test_a_rule_watches_the_series_that_it_names(
    circle: Series, three_failures: datetime, name: Callable[[AlertRule, Series], None]
) -> None:
    (other,) = many(1, circle)
    Series.objects.filter(pk=other.pk).update(suite=Suite.objects.create(name="other"), probe="login")
    for i in range(3):
        ended(other, three_failures - i * MINUTE, State.FAILED)
    name(rule(everything=False), circle)
    evaluate(three_failures)
    assert Alert.objects.get().series == circle


def test_a_rule_that_names_nothing_watches_nothing(circle: Series, three_failures: datetime) -> None:
    rule(everything=False)
    evaluate(three_failures)
    assert not Alert.objects.exists()


def test_two_rules_have_an_alert_each(circle: Series, three_failures: datetime) -> None:
    rule("two", condition="failures_in_row", threshold=2)
    rule("three")
    evaluate(three_failures)
    assert sorted(Alert.objects.values_list("rule__name", flat=True)) == ["three", "two"]


def test_a_rule_notifies_the_channels_that_it_has_at_that_time(
    circle: Series, three_failures: datetime
) -> None:
    hook = {"kind": "webhook", "url": "https://hooks.example.org/"}
    rule(notify=[*LOG, hook])
    evaluate(three_failures)
    assert [notification.channel for notification in Notification.objects.order_by("pk")] == [*LOG, hook]
    AlertRule.objects.update(notify=LOG)
    passed(three_failures)
    evaluate(three_failures + MINUTE)
    assert Notification.objects.filter(event=Event.CLOSED).count() == 1


def test_unclaimed_slots_are_a_silence(circle: Series, noon: datetime) -> None:
    rule(condition="silent_seconds", threshold=600)
    expand(noon)
    passed(noon + MINUTE)
    for minutes in range(2, 12):
        reap(noon + minutes * MINUTE)
        evaluate(noon + minutes * MINUTE)
    assert not Alert.objects.exists()
    evaluate(noon + 12 * MINUTE)  # without any news but that it has lasted too long
    alert = Alert.objects.get()
    assert (alert.since, alert.closed_at) == (noon + 2 * MINUTE, None)
    failed(noon + 12 * MINUTE)
    evaluate(noon + 13 * MINUTE)
    alert.refresh_from_db()
    assert (alert.closed_at, alert.closed_text) == (
        noon + 13 * MINUTE,
        "reported again: failed at 2026-03-01 12:12:00 UTC",
    )


def test_a_silence_is_evaluated_at_its_threshold_and_not_before(
    circle: Series, noon: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rule(condition="silent_seconds", threshold=600)
    expand(noon)
    passed(noon + MINUTE)
    evaluate(noon + MINUTE)
    assert Recheck.objects.get().due_at == noon + 12 * MINUTE
    with django_assert_num_queries(7):  # the lock, authors, rules, what has news, what is open; a savepoint
        evaluate(noon + 2 * MINUTE)


def test_maintenance_is_no_silence(circle: Series, noon: datetime) -> None:
    rule(condition="silent_seconds", threshold=600)
    passed(noon)
    for minutes in range(1, 30):
        ended(circle, noon + minutes * MINUTE, State.SKIPPED)
    evaluate(noon + 30 * MINUTE)
    assert not Alert.objects.exists()


def test_without_rules_an_evaluation_takes_six_statements(
    circle: Series, three_failures: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(6):  # the lock, authors, rules, the due rechecks; a savepoint
        evaluate(three_failures)


def test_the_number_of_queries_does_not_depend_on_the_number_of_changed_series(
    circle: Series, three_failures: datetime, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    rule("three")
    rule("silence", condition="silent_seconds", threshold=600)
    evaluate(three_failures)
    series = many(40, circle)
    for expected in (1, 40):
        for watched in series[:expected]:
            for i in range(3):
                slot = three_failures + timedelta(hours=expected, minutes=i)
                ended(watched, slot, State.FAILED)
        with django_assert_num_queries(10):
            evaluate(three_failures + timedelta(hours=expected, minutes=4))
    assert Alert.objects.open().filter(rule__name="three").count() == 41


def test_the_database_refuses_a_second_open_alert_of_a_rule_for_a_series(
    circle: Series, three_failures: datetime
) -> None:
    rule()
    evaluate(three_failures)
    twin = Alert.objects.get()
    twin.pk = None
    with pytest.raises(IntegrityError, match="alert_open_once"), transaction.atomic():
        twin.save()


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": 3},
        {"condition": "", "threshold": 3},
        {"condition": "failures_in_row", "threshold": 0},
        {"condition": "failures_in_row"},
    ],
)
def test_the_database_refuses_a_rule_without_a_condition_and_a_threshold(
    db: None, fields: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match=r"alert_rule_has_a_condition|threshold"), transaction.atomic():
        AlertRule.objects.create(name="none", everything=True, **fields)


@pytest.mark.django_db(transaction=True)
def test_of_concurrent_evaluations_one_opens_the_alert(circle: Series, three_failures: datetime) -> None:
    rule()

    def one_looks(_: int) -> None:
        try:
            evaluate(three_failures)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one_looks, range(8)))
    assert Alert.objects.count() == Notification.objects.count() == 1


def test_a_rule_with_an_unusable_condition_does_not_stop_the_others(
    circle: Series, three_failures: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    rule("gone", condition="no_such_condition", threshold=3)
    rule("too-short", condition="silent_seconds", threshold=1)
    usable = rule()
    evaluate(three_failures)
    assert Alert.objects.get().rule == usable
    assert "alert rule gone is ignored: there is no alert condition 'no_such_condition'" in caplog.text
    assert "alert rule too-short is ignored: silent_seconds: expected seconds from 60" in caplog.text
