"""Tokens: issued within the rights of their users, rotated, revoked, expiring, with their last use."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.depot.access import roles, tokens
from monitor.depot.access.roles import Grant
from monitor.depot.access.token_callers import ExceedsRights
from monitor.depot.access.tokens import (
    InvalidTokenRequest,
    IssuedToken,
    TokenEnded,
    TokenRequest,
    TooManyTokens,
)
from monitor.models import ApiToken, Series, Site
from monitor.models.role import UserRole
from monitor.models.token import MANAGE, OUTCOME, READ, REPORT, RUN
from tests.monitor import reporter_rows
from tests.monitor.web.accounts.logins import as_confirmed, confirm
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def operator() -> User:
    user = User.objects.create_user("ada")
    roles.grant(user, Grant(UserRole.OPERATOR))
    return user


@pytest.fixture
def site_admin() -> User:
    """The admin of ncsa, where the reporter ncsa is; there are a site and a reporter sdsc, too."""
    for name in ("ncsa", "sdsc"):
        reporter_rows.remote(name)
    user = User.objects.create_user("bob")
    roles.grant(user, Grant(UserRole.SITE_ADMIN, "ncsa"))
    return User.objects.get(pk=user.pk)


def issued(user: User, *scopes: str, now: datetime | None = None, **options: Any) -> IssuedToken:
    request = TokenRequest(user, "test", scopes or (READ,), **options)
    return tokens.issue(request, now or timezone.now(), issuer=user)


def call(text: str, path: str = "me", method: str = "get", body: object = None, **headers: Any) -> Any:
    client = Client(headers={"Authorization": f"Bearer {text}"})
    sent = "" if body is None else json.dumps(body)
    return client.generic(method, f"/api/v1/{path}", sent, content_type="application/json", **headers)


def test_a_token_expires_after_ninety_days_by_default(operator: User) -> None:
    assert issued(operator, now=NOW).token.expires_at == NOW + timedelta(days=90)


def test_only_an_administrator_issues_a_token_that_writes_for_ever(operator: User) -> None:
    assert issued(operator, READ, days=None).token.expires_at is None
    with pytest.raises(ExceedsRights, match="only an administrator issues a token that writes and never"):
        issued(operator, READ, RUN, days=None)
    root = User.objects.create_superuser("root")
    assert issued(root, READ, RUN, days=None).token.expires_at is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": " "}, "name: expected 1 to 100 characters"),
        ({"name": "a\x00"}, "name: expected"),
        ({"scopes": ()}, "scopes: expected some of read, run, .* got none"),
        ({"scopes": ("fly",)}, "got fly"),
        ({"days": 0}, "days: expected 1 to 3650, got 0"),
        ({"days": 10**9}, "days: expected"),
        ({"scopes": (REPORT,)}, "need each other"),
        ({"reporter": "ncsa"}, "need each other"),
        ({"scopes": (REPORT,), "reporter": "nowhere"}, "there is no reporter 'nowhere'"),
        ({"scopes": (RUN,), "site": "nowhere"}, "there is no site 'nowhere'"),
        ({"site": "ncsa"}, "only the scopes run and manage are bound to a site"),
    ],
)
def test_an_invalid_request_for_a_token_is_refused(operator: User, options: Any, message: str) -> None:
    request = TokenRequest(**{"user": operator, "name": "x", "scopes": (READ,), **options})
    with pytest.raises(InvalidTokenRequest, match=message):
        tokens.issue(request, NOW, issuer=operator)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("scope", [RUN, OUTCOME, MANAGE])
def test_a_viewer_gets_no_token_that_writes(scope: str) -> None:
    with pytest.raises(ExceedsRights, match=f"the roles of eve do not permit the scope {scope}"):
        issued(User.objects.create_user("eve"), scope)


def test_a_site_admin_gets_tokens_for_its_own_site_and_reporter(site_admin: User) -> None:
    assert issued(site_admin, RUN, MANAGE, site="ncsa").token.site == Site.objects.get(name="ncsa")
    assert str(issued(site_admin, REPORT, reporter="ncsa").token.reporter) == "ncsa"
    with pytest.raises(ExceedsRights, match="do not permit changes at sdsc"):
        issued(site_admin, RUN, site="sdsc")
    with pytest.raises(ExceedsRights, match="do not permit reports of sdsc"):
        issued(site_admin, REPORT, reporter="sdsc")


def test_a_token_has_no_more_rights_than_its_user_has_now(site_admin: User) -> None:
    text = issued(site_admin, REPORT, READ, MANAGE, reporter="ncsa").text
    path = "reporters/ncsa/codes"
    assert call(text, path, "post").status_code == 201
    (sender,) = ApiToken.objects.senders([text])
    assert sender is not None
    assert sender.may_report
    roles.revoke(site_admin, Grant(UserRole.SITE_ADMIN, "ncsa"))
    assert call(text, path, "post").status_code == 403
    (sender,) = ApiToken.objects.senders([text])
    assert sender is not None
    assert not sender.may_report
    User.objects.update(is_active=False)
    assert call(text).status_code == 401
    assert ApiToken.objects.senders([text]) == [None]


def test_a_token_that_is_bound_to_a_site_changes_nothing_elsewhere(operator: User, circle: Series) -> None:
    text = issued(operator, RUN, READ, site="site-of-here").text
    for site, status in (("site-of-here", 201), ("site-of-there", 403)):
        order = {"kind": "site", "name": site, "mode": "pause", "reason": "test"}
        assert call(text, "holds", "post", order).status_code == status
    reporter_rows.remote("ncsa")
    order = {"kind": "reporter", "name": "home", "mode": "pause", "reason": "test"}
    assert call(text, "holds", "post", order).status_code == 403


def test_a_rotated_token_stays_valid_for_the_grace_time(operator: User) -> None:
    now = timezone.now()
    old = issued(operator, READ, RUN, days=10, now=now)
    new = tokens.rotate(old.token, now, grace=timedelta(hours=2), caller=None)
    assert (new.token.scopes, new.token.name, new.token.user) == ([READ, RUN], "test", operator)
    assert call(old.text).json()["token"]["prefix"] == old.token.prefix
    assert call(new.text).json()["token"]["prefix"] == new.token.prefix
    old.token.refresh_from_db()
    assert old.token.expires_at == now + timedelta(hours=2)
    assert old.token.state(now) == "rotated"
    with pytest.raises(TokenEnded, match="was rotated before"):
        tokens.rotate(old.token, now, caller=None)
    ApiToken.objects.filter(pk=old.token.pk).update(expires_at=now - timedelta(seconds=1))
    assert call(old.text).status_code == 401


def test_rotation_does_not_prolong_the_old_token(operator: User) -> None:
    old = issued(operator, days=1, now=NOW)
    tokens.rotate(old.token, NOW, grace=timedelta(days=20), caller=None)
    old.token.refresh_from_db()
    assert old.token.expires_at == NOW + timedelta(days=1)
    with pytest.raises(InvalidTokenRequest, match="grace: expected 0 s to 2592000 s"):
        tokens.rotate(issued(operator).token, NOW, grace=timedelta(days=31), caller=None)


def test_a_revoked_token_is_refused_at_once_and_stays_listed(operator: User) -> None:
    token = issued(operator)
    assert call(token.text, f"tokens/{token.token.pk}", "delete").status_code == 204
    assert call(token.text).status_code == 401
    with pytest.raises(TokenEnded):
        tokens.rotate(token.token, timezone.now(), caller=None)
    (listed,) = call(issued(operator).text, "tokens").json()["tokens"][1:]
    assert (listed["id"], listed["state"]) == (token.token.pk, "revoked")


def test_a_user_has_a_limited_number_of_valid_tokens(operator: User) -> None:
    ApiToken.objects.bulk_create(
        ApiToken(user=operator, name="x", sha256=f"{number}") for number in range(tokens.MOST_TOKENS)
    )
    with pytest.raises(TooManyTokens, match="ada has 200 tokens that are valid"):
        issued(operator)
    tokens.revoke(ApiToken.objects.filter(sha256="0"), timezone.now())
    issued(operator)


def test_a_program_gets_a_token_with_at_most_its_own_rights(operator: User) -> None:
    parent = issued(operator, READ, MANAGE, days=5)
    child = call(parent.text, "tokens", "post", {"name": "child", "scopes": [READ]}).json()
    assert child["token"].startswith("gcast_")
    assert child["expires_at"] == call(parent.text).json()["token"]["expires_at"]
    for order in ({"scopes": [RUN]}, {"scopes": [READ], "user": "root"}):
        assert call(parent.text, "tokens", "post", {"name": "x", **order}).status_code == 403
    reader = issued(operator, READ)
    assert call(reader.text, "tokens", "post", {"name": "x"}).status_code == 403
    assert call(reader.text, f"tokens/{parent.token.pk}", "delete").status_code == 403
    assert call(reader.text, f"tokens/{reader.token.pk}/rotate", "post", {}).status_code == 201


def test_users_see_their_own_tokens_and_administrators_all(operator: User) -> None:
    other = issued(User.objects.create_user("eve"))
    assert call(issued(operator).text, f"tokens/{other.token.pk}", "delete").status_code == 404
    root = issued(User.objects.create_superuser("root"))
    listed = call(root.text, "tokens?limit=2").json()
    assert [token["user"] for token in listed["tokens"]] == ["root", "ada"]
    rest = call(root.text, f"tokens?limit=2&cursor={listed['next']}").json()
    assert ([token["user"] for token in rest["tokens"]], rest["next"]) == (["eve"], None)
    assert "sha256" not in rest["tokens"][0]


def test_the_last_use_is_written_once_a_minute(operator: User) -> None:
    token = issued(operator)
    call(token.text, REMOTE_ADDR="192.0.2.7")
    first = ApiToken.objects.get()
    assert first.last_used_from == "192.0.2.7"
    assert first.last_used_at is not None
    call(token.text, REMOTE_ADDR="192.0.2.8")
    assert ApiToken.objects.get().last_used_from == "192.0.2.7"
    ApiToken.objects.update(last_used_at=first.last_used_at - timedelta(seconds=61))
    call(token.text, REMOTE_ADDR="192.0.2.8")
    assert ApiToken.objects.get().last_used_from == "192.0.2.8"


def test_the_use_of_a_refused_request_is_written(operator: User) -> None:
    token = issued(operator)
    assert call(token.text, "tokens", "post", {"name": ""}, REMOTE_ADDR="192.0.2.7").status_code >= 400
    assert ApiToken.objects.get().last_used_from == "192.0.2.7"


def test_tokens_that_ended_a_year_ago_are_deleted(operator: User) -> None:
    issued(operator, days=1, now=NOW)
    kept = issued(operator, days=30, now=NOW).token
    assert tokens.expire(NOW + timedelta(days=367)) == 1
    assert list(ApiToken.objects.all()) == [kept]


def test_a_user_issues_rotates_and_revokes_a_token_on_the_page(operator: User) -> None:
    browser = Client()
    browser.force_login(operator)
    form = {"name": "nightly", "scopes": ["read", "run"], "days": "30"}
    page = browser.post("/account/tokens/", form)
    (token,) = ApiToken.objects.all()
    assert "no-store" in page["Cache-Control"]
    text = page.context["issued"].text
    assert text in page.content.decode()
    assert call(text).json()["token"]["scopes"] == ["read", "run"]
    assert text not in browser.get("/account/tokens/").content.decode()
    new = browser.post(f"/account/tokens/{token.pk}/rotate/").context["issued"]
    assert browser.post(f"/account/tokens/{new.token.pk}/revoke/").status_code == 302
    assert call(new.text).status_code == 401
    refused = as_confirmed(browser, operator).post("/account/tokens/", {**form, "days": "never"})
    assert (refused.status_code, ApiToken.objects.count()) == (409, 2)
    assert "only an administrator issues a token that writes" in refused.content.decode().lower()


def test_a_session_issues_and_rotates_tokens_without_end_only_after_a_confirmation() -> None:
    user = builders.user("ada", password=builders.PASSWORD)
    browser = Client()
    browser.force_login(user)
    form = {"name": "nightly", "scopes": ["read"], "days": "never"}
    asked = browser.post("/account/tokens/", form)
    assert asked["Location"].startswith("/account/confirm/password/?next=%2Faccount%2Ftokens%2F")
    by_api = {"name": "nightly", "days": None}
    refused = browser.post("/api/v1/tokens", by_api, content_type="application/json")
    assert (refused.status_code, ApiToken.objects.count()) == (403, 0)

    form_again = confirm(browser, next_path=unquote(asked["Location"].partition("next=")[2]))["Location"]
    page = browser.get(form_again)
    assert page.context["submitted"] == {**form, "reporter": "", "site": ""}, "what was typed is kept"
    assert "confirm that it is you" in page.content.decode()
    token = browser.post("/account/tokens/", form).context["issued"].token
    assert browser.post("/api/v1/tokens", by_api, content_type="application/json").status_code == 201

    as_confirmed(browser, user, seconds_ago=301)
    assert browser.post(f"/account/tokens/{token.pk}/rotate/").status_code == 302
    assert (
        browser.post(f"/api/v1/tokens/{token.pk}/rotate", {}, content_type="application/json").status_code
        == 403
    )
    as_confirmed(browser, user, seconds_ago=-60)
    assert browser.post(f"/account/tokens/{token.pk}/rotate/").status_code == 302, "the clock was set back"
