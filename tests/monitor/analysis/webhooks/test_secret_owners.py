"""A secret signs for its owners only: operators, or the admins of the site that its variable names."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from monitor.analysis.alerts import channels
from monitor.analysis.webhooks.secret_owners import site_in_capitals, variable_of, why_foreign
from monitor.analysis.webhooks.signature import VARIABLES
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import AlertRule, ApiToken, Site
from monitor.models.alert import CHANGE_RULES
from monitor.models.role import UserRole
from monitor.models.token import MANAGE, READ

OPERATORS, OWN, OTHER = (
    "GRIDCAST_WEBHOOK_OPS",
    "GRIDCAST_WEBHOOK_AT_NCSA__CHAT",
    "GRIDCAST_WEBHOOK_AT_SDSC__CHAT",
)
URL = "https://hooks.example.org/mine"


@pytest.fixture
def ada(db: None) -> User:
    """The admin of ncsa; there is a site sdsc, too."""
    for name in ("ncsa", "sdsc"):
        Site.objects.create(name=name)
    user = User.objects.create_user("ada")
    roles.grant(user, Grant(UserRole.SITE_ADMIN, "ncsa"))
    return User.objects.get(pk=user.pk)


def operator() -> User:
    user = User.objects.create_user("op")
    roles.grant(user, Grant(UserRole.OPERATOR))
    return User.objects.get(pk=user.pk)


@given(st.from_regex(r"\A[-a-zA-Z0-9_]{1,50}\Z"), st.from_regex(r"\A[A-Z0-9]{1,5}(_[A-Z0-9]{1,5}){0,2}\Z"))
def test_a_variable_is_read_as_it_was_made(site: str, name: str) -> None:
    variable = variable_of(site, name)
    assert VARIABLES.fullmatch(variable)
    assert site_in_capitals(variable) == site.upper().replace("-", "_")


@pytest.mark.parametrize(
    "variable",
    [
        OPERATORS,
        "GRIDCAST_WEBHOOK_AT_NCSA",
        "GRIDCAST_WEBHOOK_AT_NCSA_CHAT",
        "GRIDCAST_WEBHOOK_AT__CHAT",
        "GRIDCAST_WEBHOOK_AT_NCSA__",
        "GRIDCAST_WEBHOOK_XAT_NCSA__CHAT",
    ],
)
def test_any_other_variable_belongs_to_the_operators(ada: User, variable: str) -> None:
    assert site_in_capitals(variable) == ""
    why = why_foreign(variable, ada, CHANGE_RULES)
    assert why.startswith(f"the secret in {variable} belongs to the operators; yours have names such as")
    assert "GRIDCAST_WEBHOOK_AT_NCSA__SECRET" in why
    assert why_foreign(variable, operator(), CHANGE_RULES) == ""


def test_a_secret_of_a_site_is_for_its_admins_and_for_operators(ada: User) -> None:
    assert why_foreign(OWN, ada, CHANGE_RULES) == ""
    assert "belongs to another site" in why_foreign(OTHER, ada, CHANGE_RULES)
    assert "belongs to another site" in why_foreign(variable_of("nowhere"), ada, CHANGE_RULES)
    assert why_foreign(OTHER, operator(), CHANGE_RULES) == ""


def test_the_present_rights_count(ada: User) -> None:
    roles.revoke(ada, Grant(UserRole.SITE_ADMIN, "ncsa"))
    assert "belongs to another site" in why_foreign(OWN, ada, CHANGE_RULES)
    roles.grant(ada, Grant(UserRole.SITE_ADMIN, "ncsa"))
    assert why_foreign(OWN, ada, CHANGE_RULES) == ""
    ada.is_active = False
    ada.save()
    assert "belongs to" in why_foreign(OWN, User.objects.get(pk=ada.pk), CHANGE_RULES)


def test_a_token_at_a_site_names_the_secrets_of_that_site_only(ada: User) -> None:
    bound = operator()
    bound.bound_site = Site.objects.get(name="ncsa").pk  # type: ignore[attr-defined]  # as ApiToken.objects.find
    assert why_foreign(OWN, bound, CHANGE_RULES) == ""
    assert "belongs to another site" in why_foreign(OTHER, bound, CHANGE_RULES)
    assert "belongs to the operators" in why_foreign(OPERATORS, bound, CHANGE_RULES)


@pytest.mark.parametrize(("name", "other"), [*itertools.permutations(["a-b", "a_b", "A-b"], 2)])
def test_sites_with_the_same_capitals_share_no_secret(db: None, name: str, other: str) -> None:
    user = User.objects.create_user("bob")
    Site.objects.create(name=name)
    roles.grant(user, Grant(UserRole.SITE_ADMIN, name))
    user = User.objects.get(pk=user.pk)
    assert why_foreign(variable_of(name), user, CHANGE_RULES) == ""
    Site.objects.create(name=other)
    why = why_foreign(variable_of(name), user, CHANGE_RULES)
    assert why.endswith("may hold the secret of another site with the same capitals: ask an operator")
    assert other not in why
    roles.grant(user, Grant(UserRole.SITE_ADMIN, other))
    assert why_foreign(variable_of(name), User.objects.get(pk=user.pk), CHANGE_RULES) == ""


def entry(variable: str) -> dict[str, Any]:
    channel = {"kind": "webhook", "url": URL, "secret_variable": variable}
    return {"failures_in_row": 3, "watches": {"sites": ["ncsa"]}, "notify": [{"kind": "log"}, channel]}


def put(user: User, variable: str, *, is_dry_run: bool = False) -> Any:
    text = ApiToken.objects.issue(user, "x", [READ, MANAGE])
    client = Client(headers={"Authorization": f"Bearer {text}"})
    body = json.dumps({"entry": entry(variable), "is_dry_run": is_dry_run})
    return client.put("/api/v1/grid/alerts/mine", body, content_type="application/json")


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_the_api_takes_no_foreign_secret(ada: User, is_dry_run: bool) -> None:
    for variable in (OPERATORS, OTHER):
        refused = put(ada, variable, is_dry_run=is_dry_run)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert f'"notify[1].secret_variable": the secret in {variable} belongs to' in refused.json()["detail"]
    assert not AlertRule.objects.exists()
    assert put(ada, OWN, is_dry_run=is_dry_run).status_code in (200, 201)


def test_a_site_admin_does_not_change_where_a_secret_of_the_operators_signs(ada: User) -> None:
    assert put(operator(), OPERATORS).status_code == 201
    assert put(ada, OPERATORS).status_code == 403
    assert put(ada, OWN).status_code == 200


def test_the_form_takes_no_foreign_secret_and_says_so_at_the_field(ada: User) -> None:
    browser = Client()
    browser.force_login(ada)
    form = {
        "name": "mine", "enabled": "on", "severity": "major", "failures_in_row": "3", "watches.sites": "ncsa",
        "notify.2.use": "on", "notify.2.url": URL, "notify.2.secret_variable": OPERATORS,
        "seen": seen_of_a_new_rule(browser), "verb": "save",
    }  # fmt: skip
    path = "/settings/alerts/new/?condition=failures_in_row"
    refused = browser.post(path, form)
    assert refused.status_code == 409
    (shown,) = [each for each in refused.context["form"].shown if each.problems]
    assert shown.field.name == "notify.2.secret_variable"
    assert "belongs to the operators" in shown.problems[0]
    assert browser.post(path, {**form, "notify.2.secret_variable": OWN}).status_code == 302
    assert AlertRule.objects.get().notify[0]["secret_variable"] == OWN


def seen_of_a_new_rule(browser: Client) -> str:
    page = browser.get("/settings/alerts/new/?condition=failures_in_row").content.decode()
    found = re.search(r'name="seen" value="([^"]+)"', page)
    assert found
    return found[1]


def test_the_admin_page_takes_no_foreign_secret(ada: User) -> None:
    browser = Client()
    browser.force_login(ada)
    form = {
        "name": "mine", "condition": "failures_in_row", "threshold": "3", "severity": "major",
        "sites": [Site.objects.get(name="ncsa").pk],
    }  # fmt: skip
    for variable, status in ((OPERATORS, 200), (OTHER, 200), (OWN, 302)):
        notify = json.dumps(entry(variable)["notify"])
        answer = browser.post("/admin/monitor/alertrule/add/", {**form, "notify": notify})
        assert answer.status_code == status, answer.content.decode()
    assert AlertRule.objects.get().notify[1]["secret_variable"] == OWN


@pytest.mark.parametrize("kind", channels.names())
def test_an_option_that_names_a_variable_says_so_by_its_name(ada: User, kind: str) -> None:
    """A new channel that reads the environment in another way would sign for every user."""
    source = Path(channels.__path__[0], f"{kind}.py").read_text()
    assert not re.search(r"os\.environ|getenv|open\(|read_text", source)
    named = [name for name in channels.load(kind).option_types if name.endswith("_variable")]
    assert ("secrets_in" in source) == bool(named)
    for name in named:
        foreign = dict(channels.foreign_secrets({"kind": kind, name: OPERATORS}, ada))
        assert set(foreign) == {(name,)}
