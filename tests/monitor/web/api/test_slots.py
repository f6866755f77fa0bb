"""Slots, samples and reports of runs over the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import count

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from monitor.models import ApiToken, Metric, Run, Sample, Series
from monitor.models.run import State
from monitor.models.token import READ
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from reporters.report import run_id
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.web.api.paging import all_pages, code

API = "/api/v1"
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
TOTAL = f"{API}/series/circle/metrics/total.seconds/samples"
Change = Mapping[str, object]


def client_of(user: User) -> Client:
    return Client(headers={"authorization": f"Bearer {ApiToken.objects.issue(user, 'program', [READ])}"})


@pytest.fixture
def client(db: None) -> Client:
    return client_of(User.objects.create_superuser("operator"))


@pytest.fixture
def stranger(circle: Series) -> Client:
    """A user who may not see the series."""
    circle.suite.viewers.add(Group.objects.create(name="staff"))
    return client_of(User.objects.create_user("stranger"))


def slot_of(series: Series, slot: datetime, **fields: object) -> Run:
    values = {"due_at": slot, "state": State.EXPECTED, **fields}
    return Run.objects.create(id=run_id(series.name, slot), series=series, slot=slot, **values)


CASES: list[tuple[str, float, Change, str | None]] = [
    ("planned", 30, {}, None),
    ("due", -0.2, {}, None),
    ("late", -600, {}, None),
    ("claimed", -1, {"state": State.RUNNING}, None),
    ("done", -2, {"state": State.TIMED_OUT}, "timed_out"),
    ("skipped", -3, {"state": State.SKIPPED, "reason": "held"}, "skipped"),
    ("missed", -4, {"state": State.MISSED, "reason": "no reporter took it"}, "missed"),
]


def test_a_slot_is_planned_due_late_claimed_done_skipped_or_missed(circle: Series, client: Client) -> None:
    now = timezone.now()
    for _, minutes, fields, _ in CASES:
        slot_of(circle, now + minutes * MINUTE, **fields)
    listed = all_pages(client, f"{API}/slots", "slots")
    assert [slot["slot"] for slot in listed] == sorted((slot["slot"] for slot in listed), reverse=True)
    by_state = {slot["state"]: slot for slot in listed}
    assert set(by_state) == {state for state, *_ in CASES}
    for state, _, fields, outcome in CASES:
        assert by_state[state]["outcome"] == outcome
        assert by_state[state]["reason"] == fields.get("reason", "")
        assert all_pages(client, f"{API}/slots", "slots", state=state) == [by_state[state]]


def test_without_a_series_slots_are_those_from_a_day_ago_on(circle: Series, client: Client) -> None:
    now = timezone.now()
    old, new = slot_of(circle, now - 30 * HOUR), slot_of(circle, now - HOUR)
    runs = [slot["run"] for slot in all_pages(client, f"{API}/slots", "slots")]
    assert runs == [str(new.pk)]
    of_series = [slot["run"] for slot in all_pages(client, f"{API}/slots", "slots", series="circle")]
    assert of_series == [str(new.pk), str(old.pk)]
    start = (now - 40 * HOUR).isoformat()
    within = all_pages(client, f"{API}/slots", "slots", start=start, end=(now - 2 * HOUR).isoformat())
    assert [slot["run"] for slot in within] == [str(old.pk)]


def test_slots_that_are_added_between_pages_shift_nothing(circle: Series, client: Client) -> None:
    define([], [SeriesDefinition("twin", "circle", {"ring": ["here", "there"]})])
    twin, now, number = Series.objects.get(name="twin"), timezone.now(), count(1)
    before = [slot_of(series, now - hour * HOUR) for hour in range(3) for series in (circle, twin)]
    listed = all_pages(
        client, f"{API}/slots", "slots", between=lambda: slot_of(twin, now + next(number) * MINUTE)
    )
    runs = [slot["run"] for slot in listed]
    assert sorted(runs) == sorted(str(run.pk) for run in before)
    assert {slot["series"] for slot in all_pages(client, f"{API}/slots", "slots", series="twin")} == {"twin"}
    assert all_pages(client, f"{API}/slots", "slots", site="nowhere") == []


def test_samples_are_all_values_in_order_while_others_arrive(
    circle: Series, client: Client, noon: datetime
) -> None:
    for minute in range(5):
        ingest(wire.to_json(circle_report(noon + minute * MINUTE, ring_seconds=4.0 + minute)))
    metric = Metric.objects.get(name="total.seconds")
    later = count(5)

    def arrive() -> None:
        if (minute := next(later)) < 8:
            time = noon + minute * MINUTE
            Sample.objects.create(metric=metric, time=time, known_at=time, value=0.5, passed=False)

    listed = all_pages(client, TOTAL, "samples", between=arrive)
    assert [sample["value"] for sample in listed] == [7.0, 8.0, 9.0, 10.0, 11.0, 0.5, 0.5, 0.5]
    assert [datetime.fromisoformat(sample["time"]) for sample in listed] == [
        noon + minute * MINUTE for minute in range(8)
    ]
    assert len(all_pages(client, TOTAL, "samples", has_passed="false")) == 3
    start, end = ((noon + minute * MINUTE).isoformat() for minute in (1, 3))
    window = all_pages(client, TOTAL, "samples", start=start, end=end)
    assert [sample["value"] for sample in window] == [8.0, 9.0]
    (first, *_) = client.get(TOTAL, {"fields": "value"}).json()["samples"]
    assert first == {"value": 7.0}


def test_the_report_of_a_run_has_stages_failure_and_log(
    circle: Series, client: Client, noon: datetime
) -> None:
    report = failed_circle_report(noon)
    ingest(wire.to_json(report))
    shown = client.get(f"{API}/runs/{report.run}/report").json()
    assert [stage["name"] for stage in shown["stages"]] == ["init", "transfer_ring"]
    assert shown["failure"]["resource"] == "there"
    assert shown["log"] == [{"level": "info", "seconds": 0.0, "text": "began"}]
    assert (shown["outcome"], shown["resources"]) == ("failed", {"ring": ["here", "there"]})
    sparse = client.get(f"{API}/runs/{report.run}/report", {"fields": "log"}).json()
    assert sparse == {"log": shown["log"]}


def test_a_run_without_a_report_says_so(circle: Series, client: Client, noon: datetime) -> None:
    run = slot_of(circle, noon, state=State.MISSED)
    answer = client.get(f"{API}/runs/{run.pk}/report")
    assert code(answer) == (404, "no_report")
    assert answer.json()["state"] == "missed"


def test_what_a_user_may_not_see_does_not_exist(
    circle: Series, client: Client, stranger: Client, noon: datetime
) -> None:
    report = circle_report(noon)
    ingest(wire.to_json(report))
    assert client.get(f"{API}/runs/{report.run}/report").status_code == 200
    assert code(stranger.get(f"{API}/runs/{report.run}/report")) == (404, "unknown_run")
    assert len(client.get(f"{API}/slots", {"series": "circle"}).json()["slots"]) == 1
    assert stranger.get(f"{API}/slots", {"series": "circle"}).json()["slots"] == []
    assert client.get(TOTAL).status_code == 200
    assert code(stranger.get(TOTAL)) == (404, "unknown_series")


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("slots", {"state": "running"}, (422, "invalid")),
        ("slots", {"start": "2026-03-01T00:00:00"}, (422, "invalid")),
        (
            "slots",
            {"start": "2026-03-02T00:00:00Z", "end": "2026-03-01T00:00:00Z"},
            (422, "empty_window"),
        ),
        ("slots", {"limit": "0"}, (422, "invalid")),
        ("series/circle/metrics/none/samples", {}, (404, "unknown_metric")),
        ("series/none/metrics/total.seconds/samples", {}, (404, "unknown_series")),
        ("runs/00000000-0000-0000-0000-000000000000/report", {}, (404, "unknown_run")),
        ("runs/1/report", {}, (422, "invalid")),
    ],
)
def test_a_bad_question_is_refused(
    circle: Series, client: Client, path: str, query: dict[str, str], expected: tuple[int, str]
) -> None:
    assert code(client.get(f"{API}/{path}", query)) == expected
