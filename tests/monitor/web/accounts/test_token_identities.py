"""The text of a token is for callers that act by its identity: it has what that brings later, too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, Identity
from monitor.models.role import UserRole, act_as
from monitor.models.token import MANAGE, READ
from monitor.web.accounts import identities
from tests.monitor.depot.access.test_tokens import call
from tests.monitor.web.accounts.identities import identity_of, session_by
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
GRANTED, OPERATOR, ADMINISTRATOR = "what is granted here", "operator by the provider", "administrator there"
ALL = (GRANTED, OPERATOR, ADMINISTRATOR)


@dataclass
class Account:
    """A user with the role ``viewer`` granted here, and with two identities that bring more."""

    user: User
    identities: Mapping[str, Identity | None]

    def acting_by(self, by: str) -> User:
        user, identity = User.objects.get(pk=self.user.pk), self.identities[by]
        act_as(user, identity.pk if identity else None)
        return user

    def token(self, by: str) -> tuple[ApiToken, str]:
        text = ApiToken.objects.issue(self.acting_by(by), by, [READ, MANAGE])
        return ApiToken.objects.with_text(text), text

    def session(self, by: str) -> Client:
        return session_by(Client(), self.user, self.identities[by])


@pytest.fixture
def account(reader: User) -> Account:
    roles.grant(reader, Grant(UserRole.VIEWER))
    brought = {OPERATOR: identity_of(reader, "operator"), ADMINISTRATOR: identity_of(reader, "administrator")}
    return Account(reader, {GRANTED: None, **brought})


def sent(client: Client, path: str, body: Mapping[str, Any] | None = None) -> Any:
    return client.post(path, json.dumps(body or {}), content_type="application/json")


# Ways to the text of a token: each gets the account, by what the caller acts, and another token of the user.


def _page(account: Account, by: str, token: ApiToken) -> Any:
    return account.session(by).post(f"/account/tokens/{token.pk}/rotate/")


def _session_of_the_api(account: Account, by: str, token: ApiToken) -> Any:
    return sent(account.session(by), f"/api/v1/tokens/{token.pk}/rotate")


def _program(account: Account, by: str, token: ApiToken) -> Any:
    _, text = account.token(by)
    return call(text, f"tokens/{token.pk}/rotate", "post", {})


def _program_that_issues(account: Account, by: str, _token: ApiToken) -> Any:
    _, text = account.token(by)
    return call(text, "tokens", "post", {"name": "child", "scopes": [READ]})


def _program_that_rotates_its_own(account: Account, by: str, _token: ApiToken) -> Any:
    _, text = account.token(by)
    return call(text, "tokens/self/rotate", "post", {})


def _form(account: Account, by: str, _token: ApiToken) -> Any:
    return account.session(by).post("/account/tokens/", {"name": "x", "scopes": [READ], "days": "7"})


WAYS: Mapping[str, Callable[[Account, str, ApiToken], Any]] = {
    "page: rotate": _page,
    "page: issue": _form,
    "session: rotate_token": _session_of_the_api,
    "program: rotate_token": _program,
    "program: create_token": _program_that_issues,
    "program: rotate_own_token": _program_that_rotates_its_own,
}
ROTATES_ANOTHER = {"page: rotate", "session: rotate_token", "program: rotate_token"}


def test_each_operation_that_answers_with_a_text_is_a_way(client: Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    answers = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict) and "TokenIssued" in json.dumps(operation.get("responses", {}))
    }
    assert answers == {way.partition(": ")[2] for way in WAYS if not way.startswith("page")}


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("by", ALL)
@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_to_a_token_with_more_roles_than_the_caller_has(
    way: str, by: str, of: str, account: Account
) -> None:
    token, text = account.token(of)
    own = set(account.session(by).get("/api/v1/me").json()["roles"])
    answer = WAYS[way](account, by, token)
    shown = set(re.findall(r"gcast_[\w-]{43}", answer.content.decode())) - {text}
    is_expected = way not in ROTATES_ANOTHER or of in {GRANTED, by} or by == ADMINISTRATOR
    assert bool(shown) == is_expected, answer.content.decode()[:300]
    for each in shown:
        assert "administrator" in own or set(call(each).json()["roles"]) <= own
    if way in ROTATES_ANOTHER and not is_expected:
        token.refresh_from_db()
        assert (answer.status_code in {403, 409}, token.rotated_at) == (True, None)


def test_the_refusal_names_the_identity_and_what_to_do(account: Account) -> None:
    token, _ = account.token(ADMINISTRATOR)
    page = account.session(GRANTED).post(f"/account/tokens/{token.pk}/rotate/").content.decode()
    assert f"acts by the identity {token.identity}" in page
    assert "log in with that identity to rotate the token, or revoke it" in page


def test_the_page_offers_rotation_only_where_it_is_permitted(account: Account) -> None:
    own, other = account.token(OPERATOR)[0], account.token(ADMINISTRATOR)[0]
    page = account.session(OPERATOR).get("/account/tokens/").content.decode()
    offered = {token.name: f"/account/tokens/{token.pk}/rotate/" in page for token in (own, other)}
    assert offered == {OPERATOR: True, ADMINISTRATOR: False}
    assert f"by {other.identity}" in page


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("by", ALL)
def test_any_session_of_the_user_revokes_any_token_because_that_only_takes_away(
    by: str, of: str, account: Account
) -> None:
    (on_page, first), (by_api, second) = account.token(of), account.token(of)
    account.session(by).post(f"/account/tokens/{on_page.pk}/revoke/")
    assert account.session(by).delete(f"/api/v1/tokens/{by_api.pk}").status_code == 204
    assert [call(text).status_code for text in (first, second)] == [401, 401]


def test_a_program_lists_and_revokes_only_tokens_with_at_most_its_identity(account: Account) -> None:
    tokens = {by: account.token(by) for by in ALL}
    text = tokens[OPERATOR][1]
    listed = {each["name"] for each in call(text, "tokens").json()["tokens"]}
    assert listed == {GRANTED, OPERATOR}
    paths = [f"tokens/{tokens[by][0].pk}" for by in (ADMINISTRATOR, GRANTED, OPERATOR)]
    assert [call(text, path, "delete").status_code for path in paths] == [403, 204, 204]


# Tokens that are not valid now.


def _suspend(account: Account, by: str) -> None:
    identity = account.identities[by]
    assert identity is not None
    identities.suspend(identity, "dismissed", timezone.now())


def test_a_token_of_a_suspended_identity_is_not_rotated(account: Account) -> None:
    """Else the dismissed user would have a new text for the day on which the provider admits it again."""
    token, _ = account.token(OPERATOR)
    _suspend(account, OPERATOR)
    page = account.session(GRANTED).get("/account/tokens/").content.decode()
    assert ("stopped: dismissed" in page, f"/account/tokens/{token.pk}/rotate/" in page) == (True, False)
    listed = account.session(ADMINISTRATOR).get("/api/v1/tokens").json()["tokens"]
    assert [(each["state"], each["stopped"]) for each in listed] == [("valid", "dismissed")]
    answers = [
        account.session(GRANTED).post(f"/account/tokens/{token.pk}/rotate/"),
        sent(account.session(ADMINISTRATOR), f"/api/v1/tokens/{token.pk}/rotate"),
    ]
    assert ["gcast_" + "x" in each.content.decode() for each in answers] == [False, False]
    assert all("its identity is suspended until" in each.content.decode() for each in answers)
    with pytest.raises(CommandError, match="its identity is suspended until a login there"):
        call_command("token", "rotate", token.prefix, stdout=StringIO())
    assert ApiToken.objects.count() == 1


def test_a_token_of_a_disabled_account_is_not_rotated(account: Account) -> None:
    token, _ = account.token(OPERATOR)
    chief = Client()
    chief.force_login(builders.user(f"{account.user}-chief", is_superuser=True))
    User.objects.filter(pk=account.user.pk).update(is_active=False)
    answer = sent(chief, f"/api/v1/tokens/{token.pk}/rotate")
    assert (answer.status_code, "the account is disabled" in answer.json()["detail"]) == (403, True)
    assert chief.get(f"/api/v1/tokens/{token.pk}").json()["stopped"] == "the account is disabled"


def test_no_token_is_issued_that_would_begin_to_work_with_a_later_grant(reader: User) -> None:
    identity = identity_of(reader, "operator")
    identities.suspend(identity, "dismissed", timezone.now())
    chief = Client()
    chief.force_login(builders.user(f"{reader}-chief", is_superuser=True))
    answer = sent(chief, "/api/v1/tokens", {"name": "x", "user": reader.username})
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        f"a token of {reader} would not be valid now: no role is granted here, and no identity of the account"
        " is in force: grant a role first",
    )
    with pytest.raises(CommandError, match="no role is granted here, and no identity"):
        call_command("token", "issue", reader.username)
