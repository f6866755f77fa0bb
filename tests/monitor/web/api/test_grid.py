"""Programs define entries of the grid as the pages of settings and grid files do."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AlertRule, ApiToken, AuditEvent, Series, Site, Suite
from monitor.models.role import UserRole
from monitor.models.token import MANAGE, READ, RUN
from tests.monitor.web.pages import builders

RULE = {"failures_in_row": 3, "watches": {"sites": ["site1"]}, "notify": [{"kind": "log"}]}


@pytest.fixture
def ring(db: None) -> Series:
    return builders.circle("circle-ring", builders.sites(2))


def program(name: str, role: UserRole, site: str | None = None) -> Client:
    user = User.objects.create_user(name)
    roles.grant(user, Grant(role, site))
    token = ApiToken.objects.issue(user, "program", [READ, RUN, MANAGE])
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def operator(ring: Series) -> Client:
    return program("olga", UserRole.OPERATOR)


def put(client: Client, path: str, entry: Any, **more: Any) -> Any:
    body = {"entry": entry, **more}
    return client.put(f"/api/v1/grid/{path}", body, content_type="application/json")


def test_an_entry_is_created_read_changed_and_deleted(operator: Client) -> None:
    answer = put(operator, "suites/nightly", {"title": "Nightly", "is_public": True})
    assert (answer.status_code, answer["Location"]) == (201, "/api/v1/grid/suites/nightly")
    shown = operator.get("/api/v1/grid/suites/nightly").json()
    assert (shown["entry"]["title"], shown["entry"]["keep_samples_days"]) == ("Nightly", None)
    assert operator.get("/api/v1/suites/nightly").json()["is_public"]
    changed = put(operator, "suites/nightly", {**shown["entry"], "keep_samples_days": 9})
    assert (changed.status_code, changed.json()["changes"]) == (200, ["keep_samples_days: null -> 9"])
    event = AuditEvent.objects.latest("pk")
    assert event.changes[0]["after"] == {"keep_samples_days": 9}
    assert operator.delete("/api/v1/grid/suites/nightly").status_code == 204
    assert operator.get("/api/v1/grid/suites/nightly").json()["code"] == "unknown_suite"


def test_another_version_than_the_one_seen_is_not_replaced_or_deleted(operator: Client) -> None:
    seen = operator.get("/api/v1/grid/sites/site1").json()
    put(operator, "sites/site1", {**seen["entry"], "title": "Changed meanwhile"}, version=seen["version"])
    for answer in (
        put(operator, "sites/site1", {"title": "Mine"}, version=seen["version"]),
        put(operator, "sites/site1", {"title": "New"}, version=""),
        operator.delete(f"/api/v1/grid/sites/site1?version={seen['version']}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "changed")
    assert Site.objects.get(name="site1").title == "Changed meanwhile"


def test_a_dry_run_tells_the_changes_and_stores_nothing(operator: Client) -> None:
    answer = put(operator, "suites/main", {"keep_samples_days": 30}, is_dry_run=True)
    assert (answer.status_code, answer.json()["entry"]["keep_samples_days"]) == (200, 30)
    assert Suite.objects.get(name="main").keep_samples_days is None


@pytest.mark.parametrize(
    ("path", "entry", "detail"),
    [
        ("suites/main", {"keep_samples_days": 0}, "keep_samples_days"),
        ("series/ring", {"suite": "main", "probe": "circle", "bindings": {}}, "bindings"),
        (
            "series/x",
            {"suite": "main", "probe": "circle", "bindings": {"ring": ["{a}"]}, "for": {"a": [1]}},
            "",
        ),
        ("sites/site1", {"latitude": 91}, "latitude"),
        ("sites/site1", {"title": "\ud800"}, "surrogate"),
        ("alerts/x", {"failures_in_row": 3, "colour": "red"}, "colour"),
    ],
)
def test_an_invalid_entry_is_refused_with_its_key(
    operator: Client, path: str, entry: dict[str, Any], detail: str
) -> None:
    answer = put(operator, path, entry)
    assert answer.status_code == 422, answer.content
    assert detail in answer.content.decode()


def test_a_series_is_retired_by_an_entry_and_deleted_with_its_history(operator: Client, ring: Series) -> None:
    entry = operator.get("/api/v1/grid/series/circle-ring").json()["entry"]
    assert put(operator, "series/circle-ring", {**entry, "enabled": False}).status_code == 200
    ring.refresh_from_db()
    assert not ring.enabled
    in_use = operator.delete("/api/v1/grid/suites/main")
    assert (in_use.status_code, in_use.json()["code"]) == (409, "in_use")
    assert operator.delete("/api/v1/grid/series/circle-ring").status_code == 204
    assert not Series.objects.filter(name="circle-ring").exists()


def test_a_site_admin_defines_the_rules_of_the_own_site_only(ring: Series) -> None:
    client = program("sam", UserRole.SITE_ADMIN, "site1")
    assert put(client, "alerts/mine", RULE).status_code == 201
    assert put(client, "alerts/mine", {**RULE, "watches": {"sites": ["site2"]}}).status_code == 403
    assert put(client, "alerts/all", {**RULE, "watches": {"everything": True}}).status_code == 403
    assert put(client, "suites/mine", {}).status_code == 403
    assert AlertRule.objects.get(name="mine").sites.get().name == "site1"


def test_details_of_a_site_are_written_by_its_admin_and_made_public_by_operators(
    operator: Client, ring: Series
) -> None:
    sam, path = program("sam", UserRole.SITE_ADMIN, "site1"), "/api/v1/sites/site1"
    content = {"notes": "new disks", "contacts": [{"name": "Desk"}], "latitude": 40.1, "longitude": -88.2}
    shown = sam.patch(path, content, content_type="application/json").json()
    assert (shown["notes"], shown["latitude"], shown["longitude"]) == ("new disks", 40.1, -88.2)
    assert shown["contacts"] == [{"name": "Desk", "email": ""}]
    assert AuditEvent.objects.latest("pk").changes[0]["after"]["latitude"] == 40.1
    for change, status in (({"is_public": True}, 403), ({"latitude": None}, 422)):
        assert sam.patch(path, change, content_type="application/json").status_code == status
    assert operator.patch(path, {"is_public": True}, content_type="application/json").json()["is_public"]
