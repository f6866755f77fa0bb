"""One incident for each cause: opened by the second failure in a row, resolved when every series passes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from monitor.analysis.attribution.attribute import attribute
from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.incidents.causes import (
    ActiveCause,
    IncidentCause,
    LatestFailure,
    active_causes,
    cause_of,
)
from monitor.analysis.incidents.open_and_resolve import earlier, update_incidents
from monitor.models import FailureSignature, Incident, IncidentEvent, Series, Suite
from tests.monitor.conftest import NOON
from tests.monitor.failing_sites import FULL, HOUR, TIMEOUT, grid_of_sites, ran, runs


@pytest.fixture
def grid(circle: Series) -> dict[str, Series]:
    return grid_of_sites(circle)


def test_series_that_fail_by_one_cause_at_one_site_are_one_incident(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "a-2"], ".xx")
    update_incidents(NOON)
    incident = Incident.objects.get()
    assert (incident.kind, incident.name, incident.since) == ("at", "a", NOON - HOUR)
    assert incident.signature is not None
    assert incident.signature.name == "disk-full"
    assert {row.series.name for row in incident.affected.all()} == {"a-1", "a-2"}
    assert [event.action for event in incident.events.all()] == ["opened", "affected", "affected"]


def test_a_single_failure_is_no_incident(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "x")
    runs(grid, ["a-2"], "x.x")
    update_incidents(NOON)
    assert not Incident.objects.exists()


def test_other_sites_and_other_causes_are_other_incidents(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "b-1"], "xx")
    runs(grid, ["a-2"], "xx", TIMEOUT)
    update_incidents(NOON)
    assert Incident.objects.count() == 3


def test_an_update_without_news_changes_nothing(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    before = list(IncidentEvent.objects.values())
    update_incidents(NOON + timedelta(minutes=1))
    assert list(IncidentEvent.objects.values()) == before


def test_an_incident_is_resolved_when_its_last_series_passes(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "a-2"], "xx")
    update_incidents(NOON)
    ran(grid, ["a-1"], ".", NOON + HOUR)
    update_incidents(NOON + HOUR)
    assert Incident.objects.get().resolved_at is None
    ran(grid, ["a-2"], ".", NOON + HOUR)
    update_incidents(NOON + 2 * HOUR)
    incident = Incident.objects.get()
    assert (incident.resolved_at, incident.resolution) == (
        NOON + 2 * HOUR,
        "the last affected series passed",
    )


def test_a_disabled_series_does_not_keep_an_incident_open(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    Series.objects.filter(name="a-1").update(enabled=False)
    update_incidents(NOON + HOUR)
    assert Incident.objects.get().resolution == "the last affected series is disabled"


def test_a_series_that_fails_by_another_cause_moves_to_the_incident_of_this_cause(
    grid: dict[str, Series],
) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    for hours in (1, 2, 3):
        assert Incident.objects.count() == 1  # fewer failures in a row may alternate
        ran(grid, ["a-1"], "x", NOON + hours * HOUR, TIMEOUT)
        update_incidents(NOON + hours * HOUR)
    first, second = Incident.objects.order_by("pk")
    assert first.resolution == "the last affected series fails by another cause"
    assert [row.series.name for row in second.affected.filter(until=None)] == ["a-1"]


def test_only_a_later_failure_opens_what_a_user_resolved(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    resolved_at = NOON + timedelta(minutes=5)
    incident_actions.resolve(Incident.objects.get().pk, "emptied /tmp", "ann", resolved_at)
    update_incidents(resolved_at + timedelta(minutes=1))
    assert not Incident.objects.open().exists()
    ran(grid, ["a-1"], "x", NOON + HOUR)
    update_incidents(NOON + HOUR)
    again = Incident.objects.open().get()
    (known,) = earlier(again, Incident.objects.all())
    assert (known.incident.resolution, known.seconds) == ("emptied /tmp", 3900)


def test_users_acknowledge_assign_comment_and_resolve(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    key = Incident.objects.get().pk
    User.objects.create_superuser("ann")
    incident_actions.acknowledge(key, "ann", NOON)
    incident_actions.acknowledge(key, "bob", NOON)
    incident_actions.assign(key, "bob", "ann", NOON)
    incident_actions.comment(key, "asked the vendor", "bob", NOON)
    incident_actions.resolve(key, "new disk", "bob", NOON)
    incident_actions.comment(key, "it was the controller", "bob", NOON)
    with pytest.raises(incident_actions.IncidentIsResolved, match="is resolved since 2026-03-01 12:00 UTC"):
        incident_actions.assign(key, "ann", "ann", NOON)
    incident = Incident.objects.get()
    assert (incident.acknowledged_by, incident.assigned_to, incident.resolved_by) == ("ann", "bob", "bob")
    actions = ["acknowledged", "assigned", "commented", "resolved", "commented"]
    assert [event.action for event in incident.events.all()][2:] == actions


def test_a_timeline_names_no_series_that_a_user_may_not_see(grid: dict[str, Series]) -> None:
    secret = Suite.objects.create(name="secret")
    secret.viewers.create(name="insiders")
    Series.objects.filter(name="a-2").update(suite=secret)
    runs(grid, ["a-1", "a-2"], "xx")
    update_incidents(NOON)
    ran(grid, ["a-1", "a-2"], ".", NOON + HOUR)
    update_incidents(NOON + HOUR)
    client = Client()
    client.force_login(User.objects.create(username="reader"))
    key = Incident.objects.get().pk
    for path in (f"/incidents/{key}/", "/incidents/", f"/api/v1/incidents/{key}/events"):
        text = client.get(path).content.decode()
        assert "a-2" not in text
    assert "a-1" in client.get(f"/incidents/{key}/").content.decode()


def test_an_incident_names_the_part_at_fault(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "a-2"], "xxx", TIMEOUT)
    runs(grid, [name for name in grid if name[0] != "a"], "...")
    attribute(NOON)
    update_incidents(NOON)
    assert str(Incident.objects.get()).endswith(", compute a")


def failing(series: int, signature: int, site: str = "a") -> LatestFailure:
    return LatestFailure(series, NOON - HOUR, NOON, signature, site)


@pytest.mark.parametrize(
    ("failures", "at_fault", "causes"),
    [
        ([], {}, []),
        ([failing(1, 7), failing(2, 7)], {}, [(IncidentCause("at", "a", 7), 7, {1, 2})]),
        (
            [failing(1, 7), failing(2, 8)],
            {},
            [(IncidentCause("at", "a", 7), 7, {1}), (IncidentCause("at", "a", 8), 8, {2})],
        ),
        ([failing(1, 7, "")], {}, [(IncidentCause("", "", 7), 7, {1})]),
        (
            [failing(1, 7), failing(2, 8, "b"), failing(3, 8, "c")],
            {1: [("source", "d")], 2: [("source", "d")], 3: [("source", "d")]},
            [(IncidentCause("source", "d", None), 8, {1, 2, 3})],
        ),
    ],
)
def test_failures_are_grouped_by_cause(
    failures: list[LatestFailure],
    at_fault: dict[int, list[tuple[str, str]]],
    causes: list[tuple[IncidentCause, int, set[int]]],
) -> None:
    def shown(active: ActiveCause) -> tuple[IncidentCause, int | None, set[int]]:
        return active.cause, active.signature, {failure.series for failure in active.failures}

    assert [shown(active) for active in active_causes(failures, at_fault, {})] == causes


FULL_AT_A, TIMEOUT_AT_A = IncidentCause("at", "a", 7), IncidentCause("at", "a", 8)
DEAD_SOURCE, DEAD_SITE = IncidentCause("source", "d", None), IncidentCause("site", "a", None)


@pytest.mark.parametrize(
    ("latest", "earlier_ones", "at_fault", "current", "cause"),
    [
        (7, [], [], None, FULL_AT_A),
        (8, [7, 8], [], None, TIMEOUT_AT_A),  # a series without an incident: the latest run decides
        (8, [7, 8], [], FULL_AT_A, FULL_AT_A),  # it alternates
        (7, [8, 7], [], FULL_AT_A, FULL_AT_A),
        (8, [8], [], FULL_AT_A, FULL_AT_A),
        (8, [8, 7], [], FULL_AT_A, FULL_AT_A),
        (8, [8, 8], [], FULL_AT_A, TIMEOUT_AT_A),  # three in a row
        (8, [8, 8, 7], [], FULL_AT_A, TIMEOUT_AT_A),
        (8, [8, 8], [("source", "d")], FULL_AT_A, DEAD_SOURCE),  # a part at fault: at once
        (8, [8, 8], [("source", "d"), ("site", "a")], None, DEAD_SITE),  # the latest one
        (8, [8, 8], [("source", "d"), ("site", "a")], DEAD_SOURCE, DEAD_SOURCE),
        (8, [7, 8], [], DEAD_SOURCE, DEAD_SOURCE),  # at fault no more, but the failures alternate
        (8, [8, 8], [], DEAD_SOURCE, TIMEOUT_AT_A),
    ],
)
def test_a_series_stays_with_its_cause_while_its_failures_alternate(
    latest: int,
    earlier_ones: list[int],
    at_fault: list[tuple[str, str]],
    current: IncidentCause | None,
    cause: IncidentCause,
) -> None:
    failure = LatestFailure(1, NOON - HOUR, NOON, latest, "a", [(each, "a") for each in earlier_ones])
    assert cause_of(failure, at_fault, current) == cause


def test_failures_that_alternate_between_two_causes_are_one_incident(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1"], "xx")
    update_incidents(NOON)
    before = IncidentEvent.objects.count()
    for hours in range(1, 9):
        ran(grid, ["a-1"], "x", NOON + hours * HOUR, TIMEOUT if hours % 2 else FULL)
        update_incidents(NOON + hours * HOUR)
    assert Incident.objects.get().resolved_at is None
    assert IncidentEvent.objects.count() == before


def test_earlier_incidents_of_a_part_are_known_whatever_their_texts(grid: dict[str, Series]) -> None:
    full, timeout = (FailureSignature.objects.create(name=name, counts_against_site=True) for name in "ft")

    def past(
        hours: int, kind: str, name: str, signature: FailureSignature | None, condition: str = ""
    ) -> int:
        ended = NOON - hours * HOUR
        incident = Incident.objects.create(
            kind=kind,
            name=name,
            signature=signature,
            condition=condition,
            since=ended - HOUR,
            opened_at=ended - HOUR,
            resolved_at=ended,
            resolution=f"mended {hours}",
        )
        return incident.pk

    past(9, "destination", "b", timeout)
    past(8, "at", "b", full)
    past(7, "at", "b", timeout)
    past(6, "at", "a", full)
    past(5, "reporter", "b", None, "unseen_seconds")
    past(4, "reporter", "b", None, "lag_seconds")
    past(3, "reporter", "b", None)

    def known(kind: str, signature: FailureSignature | None, condition: str = "") -> list[str]:
        now = Incident(kind=kind, name="b", signature=signature, condition=condition, opened_at=NOON)
        return [each.incident.resolution for each in earlier(now, Incident.objects.all())]

    assert known("destination", full) == ["mended 8", "mended 9"]
    assert known("at", timeout) == ["mended 7", "mended 9"]
    assert known("reporter", None, "unseen_seconds") == ["mended 5"]
    assert known("reporter", None) == ["mended 3"]


class TestPages:
    @pytest.fixture
    def operator(self) -> Client:
        user = User.objects.create(username="ann")
        user.user_permissions.add(Permission.objects.get(codename="run_series"))
        client = Client()
        client.force_login(user)
        return client

    def test_without_incidents_the_page_says_so(self, circle: Series, operator: Client) -> None:
        assert "No open incidents" in operator.get("/incidents/").content.decode()

    def test_an_operator_works_on_an_incident(self, grid: dict[str, Series], operator: Client) -> None:
        runs(grid, ["a-1"], "xx")
        update_incidents(NOON)
        path = f"/incidents/{Incident.objects.get().pk}/"
        assert path in operator.get("/incidents/").content.decode()
        for action in ("acknowledge", "assign"):
            assert operator.post(f"{path}{action}/").status_code == 302
        wrong = operator.post(f"{path}assign/", {"text": "nemo"}, follow=True)
        assert "expected an active user" in wrong.content.decode()
        operator.post(f"{path}silence/", {"hours": "4", "text": "vendor on the way"})
        assert "Silenced until" in operator.get(path).content.decode()
        operator.post(f"{path}silence/")
        assert "Silenced until" not in operator.get(path).content.decode()
        operator.post(f"{path}comment/", {"text": "<b>asked</b>"})
        assert "expected a text" in operator.post(f"{path}resolve/", follow=True).content.decode()
        operator.post(f"{path}resolve/", {"text": "new disk"})
        assert "is resolved since" in operator.post(f"{path}assign/", follow=True).content.decode()
        page = operator.get(path).content.decode()
        assert "&lt;b&gt;asked&lt;/b&gt;" in page
        assert "new disk" in operator.get("/incidents/").content.decode()
        events = IncidentEvent.objects.values_list("action", "user").order_by("pk")[2:]
        actions = ["acknowledged", "assigned", "silenced", "silenced", "commented", "resolved"]
        assert list(events) == [(action, "ann") for action in actions]

    def test_readers_see_but_do_not_act(self, grid: dict[str, Series]) -> None:
        runs(grid, ["a-1"], "xx")
        update_incidents(NOON)
        path = f"/incidents/{Incident.objects.get().pk}/"
        reader = Client()
        assert reader.get(path).status_code == 302  # to the login
        reader.force_login(User.objects.create(username="reader"))
        assert "Resolve" not in reader.get(path).content.decode()
        assert reader.post(f"{path}resolve/", {"text": "x"}).status_code == 403
        assert reader.get(f"{path}resolve/").status_code == 405
        grid["a-1"].suite.viewers.create(name="others")
        assert reader.get(path).status_code == 404


def test_the_api_lists_incidents_with_their_timelines(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "a-2"], "xx")
    update_incidents(NOON)
    ann, bob = User.objects.create(username="ann"), User.objects.create(username="bob")
    bob.user_permissions.add(Permission.objects.get(codename="run_series"))
    client = Client()
    client.force_login(ann)
    (listed,) = client.get("/api/v1/incidents").json()["incidents"]
    assert (listed["signature"], listed["kind"], listed["name"]) == ("disk-full", "at", "a")
    assert listed["series"] == ["a-1", "a-2"]
    path = f"/api/v1/incidents/{listed['id']}"
    assert client.get(path).json() == listed
    events = client.get(f"{path}/events").json()["events"]
    assert [event["action"] for event in events] == ["opened", "affected", "affected"]
    assert [event["series"] for event in events] == [None, "a-1", "a-2"]
    assert client.post(f"{path}/acknowledge").status_code == 403
    assert client.get("/api/v1/incidents/99999999999999999999").json()["status"] == 422
    client.force_login(bob)
    assert client.post(f"{path}/acknowledge").json()["acknowledged_by"] == "bob"
    incident_actions.resolve(listed["id"], "new disk", "bob", NOON)
    assert client.post(f"{path}/acknowledge").status_code == 409
    assert client.get("/api/v1/incidents").json()["incidents"] == []
    assert len(client.get("/api/v1/incidents?state=resolved").json()["incidents"]) == 1
