"""The episodes of a cause name the series, how long it failed, and what changed when it ended."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.outcomes.cause_episodes import SeriesEpisode, episodes_of
from monitor.analysis.outcomes.read import RunOutcomes
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import FailureSignature, MaintenanceWindow, Series
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)


def hourly(outcomes: str) -> None:
    """Ingest a run an hour from noon on: ``.`` passed, ``f`` a full disk, ``k`` a refused key."""
    messages = {"f": "No space left on device", "k": "u@there: Permission denied (publickey)."}
    reports = [
        failed_circle_report(NOON + number * HOUR, message=messages[outcome])
        if outcome in messages
        else circle_report(NOON + number * HOUR)
        for number, outcome in enumerate(outcomes)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    classify_runs(NOON + len(outcomes) * HOUR)


def found(signature: FailureSignature, hours: int) -> list[SeriesEpisode]:
    end = NOON + hours * HOUR
    return episodes_of(RunOutcomes(User(is_superuser=True), NOON, end + timedelta.resolution), signature, end)


def listed(hours: int = 12) -> list[SeriesEpisode]:
    signature = FailureSignature.objects.get(name="disk-full")
    return found(signature, hours)


def test_episodes_come_newest_first_with_their_runs_and_end(circle: Series) -> None:
    hourly(".ff.fk.f")
    shown = [
        (each.episode.runs, each.episode.is_repaired, each.seconds(NOON + 9 * HOUR) / 3600)
        for each in listed()
    ]
    assert shown == [(1, False, 2.0), (1, False, 1.0), (2, True, 2.0)]
    assert [each.episode.ended_at for each in listed()] == [None, NOON + 5 * HOUR, NOON + 3 * HOUR]
    assert {each.series for each in listed()} == {"circle"}


def test_what_changed_when_it_ended_is_named(circle: Series) -> None:
    MaintenanceWindow.objects.create(
        name="disks", title="new disks", starts_at=NOON + 2 * HOUR, ends_at=NOON + 2.5 * HOUR
    )
    hourly("..f")
    newer = circle_report(NOON + 3 * HOUR)
    newer = circle_report(NOON + 3 * HOUR, probe=wire.ProbeIdentity("circle", "99", newer.probe.sha256))
    assert ingest_all([wire.to_json(newer)])[0].accepted
    (each,) = listed()
    assert sorted(each.changes) == [
        "maintenance ended: new disks",
        f"probe circle {circle_report(NOON).probe.version} -> 99",
    ]


def test_changes_at_other_times_are_not_named(circle: Series) -> None:
    MaintenanceWindow.objects.create(name="disks", starts_at=NOON, ends_at=NOON + 0.5 * HOUR)
    hourly("..f.")
    assert [list(each.changes) for each in listed()] == [[]]


def test_a_cause_without_runs_has_no_episodes(circle: Series) -> None:
    hourly("f")
    unknown = FailureSignature.objects.get(name="unknown")
    assert found(unknown, 1) == []


def test_the_number_of_queries_does_not_depend_on_the_episodes(
    circle: Series, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    hourly("f.f.f.f.")
    signature = FailureSignature.objects.get(name="disk-full")
    with django_assert_max_num_queries(8):
        assert len(found(signature, 9)) == 4
