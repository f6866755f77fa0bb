"""One incident for each cause: opened by the second failure in a row, resolved when every series passes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from monitor.failures import incident_actions
from monitor.failures.attribute import attribute
from monitor.failures.classify_runs import classify_runs
from monitor.failures.incident_causes import ActiveCause, IncidentCause, LatestFailure, active_causes
from monitor.failures.incidents import earlier, update_incidents
from monitor.failures.suspicion import suspect_the_monitor
from monitor.models import Incident, IncidentEvent, Run, Series, Site, Suite
from monitor.models.incident import MONITOR
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.conftest import NOON

HOUR = timedelta(hours=1)
FULL = "write failed: No space left on device"
TIMEOUT = "ssh: connect to host x port 22: Connection timed out"
SITES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def grid(circle: Series) -> dict[str, Series]:
    """Two series at each of five sites, such as a-1 and a-2 at site a; no series uses two sites."""
    circle.enabled = False
    circle.save()
    every = {}
    for name in SITES:
        resource = Site.objects.create(name=name).resources.create(name=f"host-{name}", scratch="/scratch")
        for number in (1, 2):
            series = Series.objects.create(
                name=f"{name}-{number}",
                probe="login",
                suite=circle.suite,
                reporter=circle.reporter,
                schedule="@hourly",
            )
            series.bindings.create(role="target", position=0, resource=resource)
            every[series.name] = series
    return every


def ran(
    grid: dict[str, Series], names: Iterable[str], outcome: str, slot: datetime, text: str = FULL
) -> None:
    """Let the series *names* run at *slot*: ``x`` failed at its site, ``.`` passed."""
    for name in names:
        failed = outcome == "x"
        Run.objects.create(
            id=wire.run_id(name, slot),
            series=grid[name],
            slot=slot,
            due_at=slot,
            state=State.FAILED if failed else State.PASSED,
            stage="login" if failed else "",
            reason=text if failed else "",
            failed_resource=f"host-{name[0]}" if failed else "",
        )
    classify_runs(slot)


def runs(grid: dict[str, Series], names: Iterable[str], outcomes: str, text: str = FULL) -> None:
    """Let the series run once an hour, the last time at noon."""
    for number, outcome in enumerate(reversed(outcomes)):
        ran(grid, names, outcome, NOON - number * HOUR, text)


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
    ran(grid, ["a-1"], "x", NOON + HOUR, TIMEOUT)
    update_incidents(NOON + HOUR)
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


def test_many_sites_that_fail_at_once_are_one_incident_of_the_monitor(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "b-1", "c-1"], "xx")
    update_incidents(NOON)
    suspect = Incident.objects.open().get(kind=MONITOR)
    assert Incident.objects.filter(is_held=True).count() == 3
    later = NOON + 2 * BLAST_WINDOW
    update_incidents(later)
    assert Incident.objects.open().get(kind=MONITOR) == suspect
    ran(grid, ["a-1", "b-1"], ".", NOON + HOUR)
    update_incidents(NOON + HOUR)
    assert not Incident.objects.open().filter(kind=MONITOR).exists()
    assert [(row.name, row.is_held) for row in Incident.objects.open()] == [("c", False)]


def test_a_user_settles_that_the_monitor_is_not_at_fault(grid: dict[str, Series]) -> None:
    runs(grid, ["a-1", "b-1", "c-1"], "xx")
    update_incidents(NOON)
    suspect = Incident.objects.open().get(kind=MONITOR)
    incident_actions.resolve(suspect.pk, "a power cut", "ann", NOON + timedelta(minutes=1))
    update_incidents(NOON + timedelta(minutes=2))
    assert not Incident.objects.open().filter(kind=MONITOR).exists()
    assert not Incident.objects.filter(is_held=True).exists()
    assert Incident.objects.open().count() == 3


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


def test_sites_that_fail_one_after_the_other_are_no_suspicion(grid: dict[str, Series]) -> None:
    for number, name in enumerate(["a-1", "b-1", "c-1", "d-1"]):
        runs(grid, [name], "xx")
        update_incidents(NOON + number * BLAST_WINDOW)
    assert not Incident.objects.filter(kind=MONITOR).exists()


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
            {1: ("source", "d"), 2: ("source", "d"), 3: ("source", "d")},
            [(IncidentCause("source", "d", None), 8, {1, 2, 3})],
        ),
    ],
)
def test_failures_are_grouped_by_cause(
    failures: list[LatestFailure],
    at_fault: dict[int, tuple[str, str]],
    causes: list[tuple[IncidentCause, int, set[int]]],
) -> None:
    def shown(active: ActiveCause) -> tuple[IncidentCause, int | None, set[int]]:
        return active.cause, active.signature, {failure.series for failure in active.failures}

    assert [shown(active) for active in active_causes(failures, at_fault)] == causes


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
        operator.post(f"{path}comment/", {"text": "<b>asked</b>"})
        assert "expected a text" in operator.post(f"{path}resolve/", follow=True).content.decode()
        operator.post(f"{path}resolve/", {"text": "new disk"})
        assert "is resolved since" in operator.post(f"{path}assign/", follow=True).content.decode()
        page = operator.get(path).content.decode()
        assert "&lt;b&gt;asked&lt;/b&gt;" in page
        assert "new disk" in operator.get("/incidents/").content.decode()
        events = IncidentEvent.objects.values_list("action", "user").order_by("pk")[2:]
        users = [("acknowledged", "ann"), ("assigned", "ann"), ("commented", "ann"), ("resolved", "ann")]
        assert list(events) == users

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
    (listed,) = client.get("/api/v1/incidents").json()
    assert (listed["signature"], listed["kind"], listed["name"]) == ("disk-full", "at", "a")
    assert listed["series"] == ["a-1", "a-2"]
    path = f"/api/v1/incidents/{listed['id']}"
    assert client.get(path).json() == listed
    events = client.get(f"{path}/events").json()
    assert [event["action"] for event in events] == ["opened", "affected", "affected"]
    assert [event["series"] for event in events] == [None, "a-1", "a-2"]
    assert client.post(f"{path}/acknowledge").status_code == 403
    assert client.get("/api/v1/incidents/99999999999999999999").json()["status"] == 404
    client.force_login(bob)
    assert client.post(f"{path}/acknowledge").json()["acknowledged_by"] == "bob"
    incident_actions.resolve(listed["id"], "new disk", "bob", NOON)
    assert client.post(f"{path}/acknowledge").status_code == 409
    assert client.get("/api/v1/incidents").json() == []
    assert len(client.get("/api/v1/incidents?resolved=true").json()) == 1
