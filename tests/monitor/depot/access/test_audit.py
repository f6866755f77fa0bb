"""The audit record: one event for a change or a denial, by whatever way, and few for a flood of them."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import get_resolver, reverse
from django.utils import timezone

from monitor.depot.access import audit, denials, roles
from monitor.depot.access.audit import Action, Actor
from monitor.depot.access.audit_trail import MOST_CHANGES, Trail, audit_trail, note
from monitor.depot.access.denials import Denials
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, AuditEvent, Hold, Series, Site
from monitor.models.role import UserRole
from monitor.models.token import OUTCOME, REPORT
from monitor.web.api import api
from monitor.web.pages.http.audit import NOT_RECORDED, PROVIDER_LOGIN
from tests.monitor.depot.access.test_recorded_commands import execute
from tests.monitor.outside import reported_series
from tests.monitor.web.accounts import logins
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DENIED = Action("api", "POST /api/v1/holds", "/api/v1/holds", "denied", 403)


def user_with(role: UserRole, name: str) -> User:
    user = builders.user(name)
    roles.grant(user, Grant(role))
    return User.objects.get(pk=user.pk)


def browser_of(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def test_a_change_by_the_api_is_recorded_with_token_and_address(circle: Series) -> None:
    user = user_with(UserRole.OPERATOR, "ada")
    text = ApiToken.objects.issue(user, "x", ["run"])
    order = {"kind": "series", "name": "circle", "mode": "pause", "reason": "disk swap"}
    client = Client(headers={"Authorization": f"Bearer {text}"})
    answer = client.post("/api/v1/holds", order, content_type="application/json", REMOTE_ADDR="192.0.2.7")
    assert answer.status_code == 201
    event = AuditEvent.objects.get()
    assert (event.user, event.token, event.address) == ("ada", text[:10], "192.0.2.7")
    assert (event.channel, event.outcome, event.status) == ("api", "done", 201)
    assert event.action == "POST /api/v1/holds"


def test_reading_measuring_and_refused_values_are_not_recorded(circle: Series) -> None:
    user = user_with(UserRole.OPERATOR, "ada")
    text = ApiToken.objects.issue(user, "x", ["run", "read"])
    client = Client(headers={"Authorization": f"Bearer {text}"})
    assert client.get("/api/v1/series").status_code == 200
    question = {"candidates": [{"series": "circle"}]}
    ranked = client.post("/api/v1/forecasts/rank", question, content_type="application/json")
    assert ranked.status_code == 200
    assert client.post("/api/v1/holds", {}, content_type="application/json").status_code == 422
    assert not AuditEvent.objects.exists()


def test_a_change_in_the_admin_pages_is_recorded_with_both_values(circle: Series) -> None:
    browser = browser_of(builders.user("chief", is_staff=True, is_superuser=True))
    site = Site.objects.get(name="site-of-here")
    url = reverse("admin:monitor_site_change", args=[site.pk])
    formset = {"resources-TOTAL_FORMS": "0", "resources-INITIAL_FORMS": "0"}
    browser.post(url, {"name": site.name, "title": "Here", **formset})
    event = AuditEvent.objects.get()
    assert (event.channel, event.user, event.action) == (
        "admin", "chief", "POST /admin/monitor/site/<path:object_id>/change/",
    )  # fmt: skip
    changed = {"kind": "site", "name": "site-of-here", "before": {"title": ""}, "after": {"title": "Here"}}
    assert changed in event.changes
    assert len(event.session) == 8


def test_keys_of_pings_are_recorded_and_pings_are_not(settings: LazySettings) -> None:
    series = reported_series()
    chief = browser_of(builders.user("chief", is_superuser=True))
    path = f"/api/v1/series/{series.name}/ping-keys"
    key = chief.post(path, {"name": "cron"}, content_type="application/json").json()
    for signal in ("/start", "/0", ""):
        assert chief.post(f"/api/v1/ping/{key['key']}{signal}").status_code == 200
    for _ in range(2):
        chief.post(f"{path}/{key['id']}/revoke")
    assert chief.post(f"/api/v1/ping/{key['key']}").status_code == 404
    created, revoked, again = AuditEvent.objects.order_by("pk")
    name = f"{key['prefix']}... of {series.name}"
    assert created.changes == [{"kind": "ping key", "name": name, "before": None, "after": {"name": "cron"}}]
    assert [change["after"] for change in revoked.changes] == ["revoked"]
    assert (again.action, again.changes) == (revoked.action, [])
    settings.GRIDCAST_API_REQUESTS = 0
    assert Client().post(f"/api/v1/ping/{key['key']}", REMOTE_ADDR="192.0.2.99").status_code == 429
    assert AuditEvent.objects.get(outcome="denied").target == "/api/v1/ping/gcping_..."


def test_a_role_is_granted_on_the_page_and_recorded() -> None:
    bob, chief = builders.user("bob"), builders.user("chief", is_superuser=True)
    browser = logins.as_confirmed(browser_of(chief), chief)
    browser.post(f"/access/users/{bob.pk}/grant/", {"role": "operator"})
    assert roles.grants_of(User.objects.get(username="bob")) == [Grant(UserRole.OPERATOR)]
    (change,) = AuditEvent.objects.get().changes
    assert change == {"kind": "role", "name": "bob: operator", "before": None, "after": "granted"}
    browser.post(f"/access/users/{chief.pk}/revoke/", {"grant": "administrator"})
    assert User.objects.get(username="chief").is_superuser


def test_denials_of_users_and_tokens_are_recorded_and_missing_credentials_are_not(circle: Series) -> None:
    browser_of(builders.user("reader-of-denials")).post("/holds/series/circle/act/", {"verb": "pause"})
    event = AuditEvent.objects.get()
    assert (event.user, event.outcome, event.status) == ("reader-of-denials", "denied", 403)
    assert Client().get("/api/v1/series").status_code == 401
    assert AuditEvent.objects.count() == 1
    stranger = Client(headers={"Authorization": "Bearer gcast_guess"}, REMOTE_ADDR="192.0.2.44")
    for _ in range(3):
        assert stranger.get("/api/v1/series").status_code == 401
    event = AuditEvent.objects.exclude(pk=event.pk).get()
    assert (event.user, event.address, event.status) == ("", "192.0.2.44", 401)


def test_logins_and_failed_logins_are_recorded() -> None:
    builders.user("grace-hopper", password=builders.PASSWORD)
    client = Client()
    logins.log_in(client, "grace-hopper", "wrong")
    denied = AuditEvent.objects.get()
    assert (denied.user, denied.outcome) == ("grace-hopper", "denied")
    logins.log_in(client, "grace-hopper")
    client.post("/logout/")
    done = AuditEvent.objects.filter(outcome="done").order_by("pk")
    assert [(event.user, event.changes[0]["after"]) for event in done] == [
        ("grace-hopper", "logged in"),
        ("grace-hopper", "logged out"),
    ]


def test_a_thousand_repeated_denials_are_two_events() -> None:
    counter = Denials()
    actor = Actor("eve", address="192.0.2.7")
    for second in range(1000):
        counter.add(actor, DENIED, NOW + timedelta(seconds=second / 2))
    assert AuditEvent.objects.get().repeats == 1
    counter.flush(NOW + timedelta(minutes=11))
    first, rest = AuditEvent.objects.order_by("pk")
    assert (first.repeats, rest.repeats) == (1, 999)
    assert (rest.at, rest.last_at) == (NOW + timedelta(seconds=0.5), NOW + timedelta(seconds=499.5))


def test_a_flood_from_many_addresses_writes_a_bounded_number_of_events() -> None:
    counter = Denials()
    for number in range(2000):
        counter.add(Actor(f"user-{number}", address=f"192.0.2.{number % 256}"), DENIED, NOW)
    counter.flush(NOW, is_forced=True)
    assert AuditEvent.objects.count() <= denials.MOST_NEW + 2
    assert sum(AuditEvent.objects.values_list("repeats", flat=True)) == 2000
    assert AuditEvent.objects.filter(action=denials.ANY).exists()


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8::1:2", "2001:db8::"), ("", ""), ("nonsense", "")],
)
def test_the_addresses_of_one_host_count_as_one(address: str, network: str) -> None:
    assert denials.network_of(address) == network


def test_the_changes_of_one_event_are_limited() -> None:
    with audit_trail() as trail:
        for number in range(MOST_CHANGES + 5):
            note("series", f"s{number}", before="x" * 10_000, after=NOW)
    note("series", "after the trail")
    changes = trail.as_json()
    assert len(changes) == MOST_CHANGES + 1
    assert changes[-1] == {"kind": "more", "name": "5 further changes"}
    assert len(json.dumps(changes)) < MOST_CHANGES * 2_300
    assert changes[0]["after"] == "2026-03-01T12:00:00Z"


def test_the_record_cannot_be_changed_and_expires() -> None:
    done = Action("page", "POST /x", "/x", "done", 200)
    for days in (500, 1):
        audit.write(Actor("ada"), done, NOW - timedelta(days=days))
    for change in (lambda: AuditEvent.objects.update(user="eve"), AuditEvent.objects.all().delete):
        with pytest.raises(IntegrityError, match="cannot be changed"), transaction.atomic():
            change()
    assert AuditEvent.objects.expire(NOW - timedelta(days=400)) == 1
    assert AuditEvent.objects.get().at == NOW - timedelta(days=1)


def test_texts_that_the_database_cannot_store_are_recorded_without_them() -> None:
    assert audit.write(Actor("a\x00b\ud800" + "x" * 300), DENIED, NOW) is not None
    assert AuditEvent.objects.get().user.startswith("ab?xxx")


def test_operators_read_the_record_by_api_page_and_command_and_others_do_not() -> None:
    audit.write(Actor("ada"), Action("page", "POST /x", "/x", "done", 200), NOW)
    operator = browser_of(user_with(UserRole.OPERATOR, "oscar"))
    listed = operator.get("/api/v1/audit", {"user": "ada"}).json()
    assert ([event["action"] for event in listed["events"]], listed["next"]) == (["POST /x"], None)
    assert (
        operator.get("/api/v1/audit", {"start": "2026-03-02T00:00:00Z", "user": "ada"}).json()["events"] == []
    )
    assert "POST /x" in operator.get("/audit/?user=ada").content.decode()
    (row,) = csv.DictReader(operator.get("/audit/audit.csv?user=ada").content.decode().splitlines())
    assert (row["action"], row["changes"]) == ("POST /x", "[]")
    reader = browser_of(builders.user("reader-of-audit"))
    assert reader.get("/audit/audit.csv").status_code == 403
    assert reader.get("/api/v1/audit").status_code == 403
    assert reader.get("/audit/").status_code == 403
    for options in ([], ["--json"]):
        printed = StringIO()
        call_command("audit", "--user=ada", "--subject=/x", *options, stdout=printed)
        assert "POST /x" in printed.getvalue()


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, {"/holds/site/ncsa/act/", "/series/ring/run-now/"}),
        ({"user": "ada"}, {"/holds/site/ncsa/act/"}),
        ({"action": "hold"}, {"/holds/site/ncsa/act/"}),
        ({"subject": "ncsa"}, {"/holds/site/ncsa/act/"}),
        ({"subject": "ring-2"}, {"/series/ring/run-now/"}),  # among the changes
        ({"outcome": "denied"}, {"/series/ring/run-now/"}),
        ({"channel": "api"}, {"/series/ring/run-now/"}),
        ({"range": "24h"}, set()),
        ({"user": "\x00", "outcome": "nonsense"}, {"/holds/site/ncsa/act/", "/series/ring/run-now/"}),
    ],
)
def test_the_page_selects_events(query: dict[str, str], shown: set[str]) -> None:
    audit.write(Actor("ada"), Action("page", "POST hold-act", "/holds/site/ncsa/act/", "done", 302), NOW)
    changes = Trail([{"kind": "series", "name": "ring-2", "before": 1, "after": 2}])
    audit.record(
        Actor("bob"), Action("api", "POST run", "/series/ring/run-now/", "denied", 403), NOW, changes
    )
    operator = browser_of(user_with(UserRole.OPERATOR, "oscar"))
    page = operator.get("/audit/", query).content.decode()
    assert {path for path in ("/holds/site/ncsa/act/", "/series/ring/run-now/") if path in page} == shown


@pytest.fixture
def no_events(db: None) -> None:
    """The database refuses new events of the audit record."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_auditevent ADD CONSTRAINT no_events CHECK (false) NOT VALID")


def test_without_its_event_no_command_changes_anything(no_events: None, circle: Series) -> None:
    bob = builders.user("bob")
    assert execute("access", "grant", "bob", "operator") == []
    assert execute("hold", "pause", "--series=circle", "--why=x") == []
    assert (roles.grants_of(bob), Hold.objects.exists()) == ([], False)


def test_without_its_event_a_request_changes_nothing(no_events: None, circle: Series) -> None:
    chief = browser_of(builders.user("chief", is_staff=True, is_superuser=True))
    chief.raise_request_exception = False
    order = {"kind": "series", "name": "circle", "mode": "pause", "reason": "disk swap"}
    by_api = chief.post("/api/v1/holds", order, content_type="application/json")
    assert (by_api.status_code, by_api.json()["code"]) == (500, "our_error")
    assert chief.post("/holds/series/circle/act/", {"verb": "pause", "why": "x"}).status_code == 500
    site = Site.objects.get(name="site-of-here")
    formset = {"resources-TOTAL_FORMS": "0", "resources-INITIAL_FORMS": "0"}
    url = reverse("admin:monitor_site_change", args=[site.pk])
    assert chief.post(url, {"name": site.name, "title": "Here", **formset}).status_code == 500
    assert not Hold.objects.exists()
    assert not Site.objects.filter(title="Here").exists()


def test_without_its_event_a_login_is_refused(no_events: None) -> None:
    builders.user("grace-hopper", password=builders.PASSWORD)
    client = Client(raise_request_exception=False)
    logins.log_in(client, "grace-hopper")
    assert client.get("/account/").status_code == 302


def test_an_error_of_the_service_is_recorded_as_failed(circle: Series) -> None:
    chief = browser_of(builders.user("chief", is_superuser=True))
    chief.raise_request_exception = False
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE monitor_hold ADD CONSTRAINT no_holds CHECK (false) NOT VALID")
    order = {"kind": "series", "name": "circle", "mode": "pause", "reason": "disk swap"}
    assert chief.post("/api/v1/holds", order, content_type="application/json").status_code == 500
    event = AuditEvent.objects.get()
    assert (event.user, event.outcome, event.status, event.changes) == ("chief", "failed", 500, [])


def test_the_routes_that_are_not_recorded_exist() -> None:
    routes = {f"api/v1/{pattern.pattern}" for pattern in api.urls[0]}
    assert routes >= NOT_RECORDED
    assert get_resolver().resolve(f"/{PROVIDER_LOGIN}").url_name == "openid_connect_callback"


def test_no_operation_for_measured_data_is_recorded() -> None:
    """Programs send them with the scopes report and outcome."""
    sending = set()
    for path, methods in api.document()["paths"].items():
        for method, operation in methods.items():
            scopes = {scope for way in operation.get("security", []) for its in way.values() for scope in its}
            if method != "get" and scopes & {REPORT, OUTCOME}:
                sending.add(re.sub(r"{(\w+)}", r"<\1>", path.lstrip("/")))
    assert "api/v1/reports" in sending
    assert sending <= NOT_RECORDED


def test_roles_and_tokens_are_managed_by_command() -> None:
    Site.objects.create(name="ncsa")
    builders.user("bob")
    printed = StringIO()
    call_command("access", "grant", "bob", "site_admin", "--site=ncsa", stdout=printed)
    assert printed.getvalue() == "bob  site_admin:ncsa\n"
    call_command("access", "revoke", "bob", "site_admin", "--site=ncsa", stdout=printed)
    assert printed.getvalue().endswith("bob  none: reads as a viewer\n")
    call_command("token", "issue", "bob", "--name=nightly", "--days=7", stdout=printed)
    text = printed.getvalue().split()[-1]
    token = ApiToken.objects.get()
    assert token.expires_at is not None
    assert timedelta(days=6) < token.expires_at - timezone.now() < timedelta(days=8)
    call_command("token", "rotate", text[:10], "--grace-hours=0", stdout=printed)
    new = printed.getvalue().split()[-1]
    token.refresh_from_db()
    assert token.state(timezone.now()) == "expired"
    assert ApiToken.objects.find(new) is not None
    call_command("token", "revoke", new[:10], stdout=StringIO())
    assert ApiToken.objects.find(new) is None
    listed = StringIO()
    call_command("token", "list", "bob", "--all", stdout=listed)
    assert "revoked" in listed.getvalue()
    assert new not in listed.getvalue()


def test_the_admin_pages_let_a_site_admin_change_only_what_is_of_its_site() -> None:
    for name in ("ncsa", "sdsc"):
        Site.objects.create(name=name)
    user = builders.user("bob")
    roles.grant(user, Grant(UserRole.SITE_ADMIN, "ncsa"))
    browser, add = browser_of(User.objects.get(pk=user.pk)), reverse("admin:monitor_maintenancewindow_add")
    times = {
        "starts_at_0": "2026-03-01",
        "starts_at_1": "08:00",
        "ends_at_0": "2026-03-01",
        "ends_at_1": "09:00",
    }
    for sites, status in (([], 200), (["sdsc"], 200), (["ncsa"], 302)):
        keys = list(Site.objects.filter(name__in=sites).values_list("pk", flat=True))
        form = {"name": "disks", "timezone": "UTC", **times, "sites": keys}
        assert browser.post(add, form).status_code == status
    rule = reverse("admin:monitor_alertrule_add")
    fields = browser.get(rule).context["adminform"].form.fields
    assert not {"everything", "suites", "series", "reporters"} & set(fields)
    assert [site.name for site in fields["sites"].queryset] == ["ncsa"]
    assert Group.objects.filter(name="site_admin").exists()
