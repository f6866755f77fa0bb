"""Maintenance windows over the API: listed, announced, declared, changed, ended and deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from monitor.depot.access.roles import Grant, grant
from monitor.models import (
    ApiToken,
    MaintenanceChange,
    MaintenanceWindow,
    Recomputation,
    Series,
    Site,
)
from monitor.models.role import UserRole
from monitor.models.token import READ, RUN
from tests.monitor.web.api.paging import all_pages, code

URL = "/api/v1/maintenance"
HOUR = timedelta(hours=1)
Order = dict[str, Any]


def client_of(user: User, *scopes: str) -> Client:
    token = ApiToken.objects.issue(user, "program", list(scopes or (READ, RUN)))
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_superuser("operator")


@pytest.fixture
def client(operator: User) -> Client:
    return client_of(operator)


@pytest.fixture
def site_admin(circle: Series) -> Client:
    """The admin of the site of *here*."""
    user = User.objects.create_user("hera")
    grant(user, Grant(UserRole.SITE_ADMIN, "site-of-here"))
    return client_of(user)


def order(start: float = 1, end: float = 2, **changes: Any) -> Order:
    """Return an order for a window from *start* to *end*, in hours from now."""
    now = timezone.now()
    times = {"starts_at": (now + start * HOUR).isoformat(), "ends_at": (now + end * HOUR).isoformat()}
    return {"name": "disks", "sites": ["site-of-here"], "reason": "new disks", **times, **changes}


def post(client: Client, body: Order, path: str = "") -> Any:
    return client.post(f"{URL}{path}", body, content_type="application/json")


def patch(client: Client, body: Order) -> Any:
    return client.patch(f"{URL}/disks", {"reason": "late", **body}, content_type="application/json")


def site_state(client: Client) -> str:
    return str(client.get("/api/v1/sites/site-of-here").json()["state"])


def changes() -> list[tuple[str, str]]:
    return list(MaintenanceChange.objects.order_by("pk").values_list("action", "who"))


def test_an_announced_window_is_planned_then_found_at_its_location(circle: Series, client: Client) -> None:
    answer = post(client, order(title="New disks"))
    assert answer.status_code == 201
    assert client.get(answer["Location"]).json() == answer.json()
    shown = answer.json()
    assert (shown["state"], shown["sites"], shown["title"]) == ("planned", ["site-of-here"], "New disks")
    assert changes() == [("added", "operator")]
    assert [each["name"] for each in client.get(URL).json()["maintenance"]] == ["disks"]


def test_an_open_window_closes_the_site_until_it_is_ended(circle: Series, client: Client) -> None:
    assert post(client, order(-1, 1)).json()["state"] == "open"
    assert site_state(client) == "maintenance"
    ended = post(client, {"reason": "done early"}, "/disks/end")
    assert (ended.status_code, ended.json()["state"]) == (200, "over")
    assert site_state(client) == "unknown"
    assert code(post(client, {"reason": "again"}, "/disks/end")) == (409, "unsuitable_state")
    assert code(patch(client, {"title": "later"})) == (409, "unsuitable_state")
    assert changes() == [("added", "operator"), ("shortened", "operator")]


def test_a_window_in_the_past_is_declared_and_availability_recomputed(circle: Series, client: Client) -> None:
    answer = post(client, order(-30, -28, sites=["site-of-here", "site-of-there"]))
    assert answer.status_code == 201, answer.content
    assert (answer.json()["state"], answer.json()["source"]) == ("over", "declared")
    record = Recomputation.objects.get()
    assert (record.requester, record.reason) == ("operator", "new disks")
    assert changes() == [("declared", "operator")]
    assert code(patch(client, {"title": "other"})) == (409, "foreign_window")
    assert client.delete(f"{URL}/disks?reason=a+mistake").status_code == 204
    assert [each.reason for each in Recomputation.objects.order_by("pk")] == ["new disks", "a mistake"]
    assert not MaintenanceWindow.objects.exists()


def test_a_planned_window_is_changed_and_keeps_what_is_left_out(circle: Series, client: Client) -> None:
    post(client, order())
    later = order(3, 4)["ends_at"]
    changed = patch(client, {"ends_at": later, "sites": ["site-of-there"]})
    assert changed.status_code == 200, changed.content
    window = MaintenanceWindow.objects.get()
    assert (window.title, window.ends_at) == ("new disks", datetime.fromisoformat(later))
    assert [site.name for site in window.sites.all()] == ["site-of-there"]
    row = MaintenanceChange.objects.latest("pk")
    assert (row.action, row.why) == ("changed", "late")
    assert row.before != row.after


def test_an_open_window_keeps_its_start(circle: Series, client: Client) -> None:
    post(client, order(-1, 1))
    assert code(patch(client, {"starts_at": order(-2)["starts_at"]})) == (409, "unsuitable_state")
    assert code(patch(client, {"ends_at": order(-1, -0.5)["ends_at"]})) == (422, "invalid")
    assert patch(client, {"ends_at": order(-1, 5)["ends_at"]}).status_code == 200


def test_a_recurring_window_has_its_next_opening_and_ends_for_good(circle: Series, client: Client) -> None:
    weekly = {"name": "disks", "sites": [], "schedule": "0 8 * * tue", "duration_seconds": 3600}
    answer = post(client, {**weekly, "reason": "weekly checks"})
    assert answer.status_code == 201, answer.content
    opening = answer.json()["occurrence"]
    starts_at = datetime.fromisoformat(opening["starts_at"])
    assert (starts_at.hour, starts_at.weekday(), answer.json()["is_everywhere"]) == (8, 1, True)
    assert post(client, {"reason": "no more"}, "/disks/end").json()["state"] in {"over", "open"}
    assert post(client, {"reason": "no more"}, "/disks/end").status_code == 409


def test_windows_are_filtered_by_state_site_and_time_and_paged(circle: Series, client: Client) -> None:
    hours = {"a-over": (-9, -8), "b-open": (-1, 1), "c-planned": (2, 3), "d-planned": (50, 51)}
    for name, (start, end) in hours.items():
        assert post(client, order(start, end, name=name)).status_code == 201
    post(client, order(name="e-there", sites=["site-of-there"]))

    def names(**query: Any) -> list[str]:
        return [each["name"] for each in all_pages(client, URL, "maintenance", **query)]

    assert names() == ["a-over", "b-open", "c-planned", "d-planned", "e-there"]
    assert names(state="planned") == ["c-planned", "d-planned", "e-there"]
    assert names(state="over") == ["a-over"]
    assert names(site="site-of-there") == ["e-there"]
    assert names(site="nowhere") == []
    assert names(start=order(0)["starts_at"], end=order(4)["starts_at"]) == ["b-open", "c-planned", "e-there"]
    assert names(end=order(-2)["starts_at"]) == ["a-over"]
    assert code(client.get(URL, {"start": "2020-01-01T00:00:00Z", "end": order(0)["starts_at"]})) == (
        422,
        "window_too_long",
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "two words"}, (422, "invalid")),
        ({"name": "x" * 51}, (422, "invalid")),
        ({"reason": " "}, (422, "invalid")),
        ({"reason": "x" * 501}, (422, "invalid")),
        ({"sites": ["nowhere"]}, (422, "unknown_site")),
        ({"ends_at": "2020-01-01T00:00:00Z"}, (422, "invalid")),
        ({"starts_at": None}, (422, "invalid")),
        ({"starts_at": "2026-03-01T08:00:00"}, (422, "invalid")),
        ({"schedule": "every day", "duration_seconds": 60}, (422, "invalid")),
        ({"schedule": "H 8 * * *", "duration_seconds": 60}, (422, "invalid")),
        ({"duration_seconds": 60}, (422, "invalid")),
        (
            {
                "schedule": "0 8 * * *",
                "duration_seconds": 60,
                "starts_at": None,
                "ends_at": "2020-01-01T00:00:00Z",
            },
            (422, "invalid"),
        ),
        ({"timezone": "Mars/Olympus"}, (422, "invalid")),
        ({"colour": "red"}, (422, "invalid")),
        ({"starts_at": "1999-01-01T00:00:00Z", "ends_at": "2003-01-01T00:00:00Z"}, (422, "invalid")),
    ],
)
def test_a_bad_order_is_refused_and_nothing_is_written(
    circle: Series, client: Client, change: Order, expected: tuple[int, str]
) -> None:
    assert code(post(client, order(**change))) == expected
    assert not MaintenanceWindow.objects.exists()
    assert not MaintenanceChange.objects.exists()


def test_a_name_is_taken_once_and_an_unknown_one_is_not_found(circle: Series, client: Client) -> None:
    post(client, order())
    assert code(post(client, order())) == (409, "name_taken")
    assert code(post(client, order(-3, -2))) == (409, "name_taken")
    assert code(client.get(f"{URL}/none")) == (404, "unknown_maintenance")
    assert code(client.delete(f"{URL}/none?reason=x")) == (404, "unknown_maintenance")
    assert code(client.delete(f"{URL}/disks")) == (422, "invalid")


def test_the_window_of_a_feed_is_changed_by_its_feed_only(circle: Series, client: Client) -> None:
    post(client, order())
    MaintenanceWindow.objects.update(source="gocdb", uid="1")
    assert code(patch(client, {"title": "mine"})) == (409, "foreign_window")
    assert code(post(client, {"reason": "x"}, "/disks/end")) == (409, "foreign_window")
    assert code(client.delete(f"{URL}/disks?reason=x")) == (409, "foreign_window")
    assert MaintenanceWindow.objects.get().title == "new disks"


def test_a_site_admin_announces_maintenance_at_its_own_site_only(site_admin: Client, client: Client) -> None:
    assert post(site_admin, order()).status_code == 201
    assert patch(site_admin, {"title": "disks and fans"}).status_code == 200
    both = ["site-of-here", "site-of-there"]
    assert code(patch(site_admin, {"sites": both})) == (403, "not_allowed")
    assert code(post(site_admin, order(name="net", sites=[]))) == (403, "not_allowed")
    assert code(post(site_admin, order(name="net", sites=["site-of-there"]))) == (403, "not_allowed")
    assert patch(client, {"sites": both}).status_code == 200
    assert code(patch(site_admin, {"sites": ["site-of-here"]})) == (403, "not_allowed")
    assert code(site_admin.delete(f"{URL}/disks?reason=x")) == (403, "not_allowed")
    assert MaintenanceWindow.objects.get().sites.count() == 2


def test_a_site_admin_that_sees_no_series_announces_maintenance_at_its_own_site(
    site_admin: Client, circle: Series
) -> None:
    circle.suite.viewers.add(Group.objects.create(name="staff"))
    assert site_admin.get("/api/v1/series").json()["series"] == []
    assert [site["name"] for site in site_admin.get("/api/v1/sites").json()["sites"]] == ["site-of-here"]
    assert post(site_admin, order(-1, 1)).status_code == 201
    assert site_state(site_admin) == "maintenance"
    assert [each["name"] for each in site_admin.get(URL).json()["maintenance"]] == ["disks"]
    assert code(post(site_admin, order(name="net", sites=["site-of-there"]))) == (422, "unknown_site")
    assert post(site_admin, {"reason": "done early"}, "/disks/end").status_code == 200


def test_users_without_the_permission_or_the_scope_change_nothing(
    circle: Series, client: Client, operator: User
) -> None:
    post(client, order())
    viewer = client_of(User.objects.create_user("vera"))
    reader = client_of(operator, READ)
    permitted = User.objects.create_user("petra")
    permitted.user_permissions.add(Permission.objects.get(codename="change_maintenancewindow"))
    for other in (viewer, reader):
        assert code(post(other, order(name="other"))) == (403, "not_allowed")
        assert code(patch(other, {"title": "x"})) == (403, "not_allowed")
        assert code(post(other, {"reason": "x"}, "/disks/end")) == (403, "not_allowed")
        assert code(other.delete(f"{URL}/disks?reason=x")) == (403, "not_allowed")
    assert Client().get(URL).status_code == 401
    assert patch(client_of(permitted), {"title": "permitted"}).status_code == 200


def test_windows_at_invisible_sites_do_not_exist(circle: Series, client: Client) -> None:
    circle.suite.viewers.add(Group.objects.create(name="staff"))
    other = client_of(User.objects.create_user("other"))
    post(client, order())
    post(client, order(name="network", sites=[]))
    assert [each["name"] for each in other.get(URL).json()["maintenance"]] == ["network"]
    assert code(other.get(f"{URL}/disks")) == (404, "unknown_maintenance")
    assert Site.objects.visible_to(User.objects.get(username="other")).count() == 0
