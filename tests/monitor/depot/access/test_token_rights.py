"""A token gets no rights from another one, and no family of tokens is prolonged for ever."""

from __future__ import annotations

import itertools
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.utils import timezone

from monitor.depot.access import roles, tokens
from monitor.depot.access.roles import Grant
from monitor.depot.access.token_callers import ExceedsRights
from monitor.depot.access.tokens import TokenEnded, TooManyTokens
from monitor.models import ApiToken, AuditEvent, PingKey, Reporter, Site
from monitor.models.role import UserRole
from monitor.models.token import MANAGE, READ, REPORT, RUN, SCOPES
from tests.monitor import reporter_rows
from tests.monitor.depot.access.test_tokens import call, issued
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def operator() -> User:
    for name in ("ncsa", "sdsc"):
        reporter_rows.remote(name)
    user = User.objects.create_user("ada")
    roles.grant(user, Grant(UserRole.OPERATOR))
    return user


def undone(*arguments: Any) -> Any:
    """Return the answer to a request that is rolled back."""
    with transaction.atomic():
        answer = call(*arguments)
        transaction.set_rollback(True)
    return answer


def rights(token: ApiToken) -> tuple[set[str], str, str, str]:
    """Return scopes, user, reporter and site; the latter two are empty if the token is not bound."""
    return set(token.scopes), token.user.username, str(token.reporter or ""), str(token.site or "")


def covers(by: ApiToken, token: ApiToken) -> bool:
    """Return what docs/access.md says: scopes, reporter, site and user of *token* are among those of *by*."""
    scopes, user, reporter, site = rights(token)
    of_by = rights(by)
    return (
        scopes <= of_by[0]
        and (user == of_by[1] or by.user.is_superuser)
        and reporter in {"", of_by[2]}
        and of_by[3] in {"", site}
    )


def test_a_token_sees_rotates_and_revokes_no_token_with_other_rights_than_its_own(operator: User) -> None:
    """Every pair of tokens of different scopes, sites, reporters and users."""
    root, eve = User.objects.create_superuser("root"), User.objects.create_user("eve")
    ncsa, sdsc = (Site.objects.get(name=name) for name in ("ncsa", "sdsc"))
    of_ncsa = Reporter.objects.get(name="ncsa")
    made: list[tuple[User, list[str], Reporter | None, Site | None]] = [
        (operator, [READ], None, None),
        (operator, [READ, MANAGE], None, None),
        (operator, [READ, RUN, MANAGE], None, None),
        (operator, [READ, MANAGE], None, ncsa),
        (operator, [READ, RUN, MANAGE], None, sdsc),
        (operator, [READ, REPORT, MANAGE], of_ncsa, None),
        (operator, list(SCOPES), Reporter.objects.get(name="sdsc"), None),
        (eve, [READ], None, None),
        (eve, [READ, MANAGE], None, None),
        (root, [READ, RUN, MANAGE], None, None),
    ]
    texts = [
        ApiToken.objects.issue(user, "x", scopes, reporter, site=site)
        for user, scopes, reporter, site in made
    ]
    rows = [ApiToken.objects.with_text(text) for text in texts]
    wrong = []
    for (by, text), token in itertools.product(zip(rows, texts, strict=True), rows):
        listed = {each["id"] for each in call(text, "tokens").json()["tokens"]}
        is_covered = covers(by, token)
        may_change = token == by or (is_covered and MANAGE in by.scopes)
        shown = call(text, f"tokens/{token.pk}")
        rotated = undone(text, f"tokens/{token.pk}/rotate", "post", {})
        revoked = undone(text, f"tokens/{token.pk}", "delete")
        seen = [token.pk in listed, shown.status_code == 200, rotated.status_code == 201]
        if [*seen, revoked.status_code == 204] != [is_covered, is_covered, may_change, may_change]:
            wrong.append(f"{rights(by)} on {rights(token)}: {seen}, {revoked.status_code}")
        refusals = {each.status_code for each in (shown, rotated, revoked)} - {200, 201, 204}
        if not refusals <= {403, 404}:
            wrong.append(f"{rights(by)} on {rights(token)}: {refusals}")
    assert wrong == []


@pytest.mark.parametrize("scope", SCOPES)
def test_every_valid_token_shows_and_rotates_itself(operator: User, scope: str) -> None:
    reporter = Reporter.objects.get(name="ncsa") if scope == REPORT else None
    text = ApiToken.objects.issue(operator, "x", [scope], reporter)
    me = call(text)
    assert (me.status_code, me.json()["token"]["scopes"]) == (200, [scope])
    new = call(text, "tokens/self/rotate", "post", {"grace_seconds": 60})
    assert (new.status_code, new.json()["scopes"], new.json()["dropped_scopes"]) == (201, [scope], [])
    assert call(new.json()["token"]).json()["token"]["id"] == new.json()["id"]
    assert call(text, "tokens/self/rotate", "post", {}).json()["code"] == "token_ended"


def test_a_session_has_no_token_to_rotate(operator: User) -> None:
    browser = Client()
    browser.force_login(operator)
    url = "/api/v1/tokens/self/rotate"
    assert browser.post(url, "{}", content_type="application/json").status_code == 401


def test_rotation_ends_with_the_family(operator: User) -> None:
    """A program that rotates its token every ten days needs a new one after a year."""
    start = now = timezone.now()
    token = issued(operator, READ, RUN, days=30, now=start).token
    end = token.family_expires_at
    assert end is not None
    assert abs(end - start - 365 * DAY) < timedelta(minutes=5)
    for _ in range(40):
        now += 10 * DAY
        if now > end:
            break
        token = tokens.rotate(token, now, grace=timedelta(0), caller=None).token
        ApiToken.objects.filter(pk=token.pk).update(created_at=now)
        assert token.family_expires_at == end
        assert token.expires_at is not None
        assert abs(token.expires_at - min(now + 30 * DAY, end)) < timedelta(minutes=5)
    with pytest.raises(TokenEnded):
        tokens.rotate(token, now, caller=None)


def test_a_token_that_lives_longer_than_families_ends_its_own(operator: User) -> None:
    long = issued(operator, days=3650).token
    assert long.family_expires_at == long.expires_at
    new = tokens.rotate(long, timezone.now() + 100 * DAY, caller=None).token
    assert new.expires_at == long.expires_at


def test_a_token_that_never_expires_has_a_family_without_an_end(operator: User) -> None:
    new = tokens.rotate(issued(operator, days=None).token, timezone.now(), caller=None).token
    assert (new.expires_at, new.family_expires_at) == (None, None)


def test_no_token_that_a_program_issues_or_rotates_outlives_its_own(operator: User) -> None:
    """However often it is rotated, and however many tokens lie between."""
    parent, sibling = issued(operator, READ, MANAGE, days=30), issued(operator, READ, days=300)
    end = call(parent.text).json()["token"]["expires_at"]
    text = parent.text
    for _ in range(3):
        order = {"name": "child", "scopes": [READ, MANAGE], "days": 3650}
        child = call(text, "tokens", "post", order).json()
        assert child["family_expires_at"] == end
        text = child["token"]
    rotated = call(parent.text, f"tokens/{sibling.token.pk}/rotate", "post", {}).json()
    assert rotated["family_expires_at"] == rotated["expires_at"] == end
    late = timezone.now() + 19 * DAY
    for each in (text, rotated["token"]):
        last = tokens.rotate(ApiToken.objects.with_text(each), late, caller=None).token
        assert last.expires_at == parent.token.expires_at
    with pytest.raises(TokenEnded):
        tokens.rotate(last, timezone.now() + 31 * DAY, caller=None)


def test_a_rotated_token_issues_nothing_for_longer_than_its_grace_time(operator: User) -> None:
    old = issued(operator, READ, MANAGE)
    call(old.text, "tokens/self/rotate", "post", {"grace_seconds": 60})
    child = call(old.text, "tokens", "post", {"name": "child", "scopes": [READ]}).json()
    assert child["family_expires_at"] == call(old.text).json()["token"]["expires_at"]


def test_a_stolen_token_is_revoked_with_all_that_came_of_it(operator: User) -> None:
    first = issued(operator, READ, MANAGE)
    sibling = issued(operator, READ)
    stolen = call(first.text, "tokens/self/rotate", "post", {}).json()
    rotated = call(stolen["token"], "tokens/self/rotate", "post", {}).json()
    child = call(rotated["token"], "tokens", "post", {"name": "child"}).json()
    taken = call(rotated["token"], f"tokens/{sibling.token.pk}/rotate", "post", {}).json()
    owner = issued(operator, READ, MANAGE)
    assert call(owner.text, f"tokens/{stolen['id']}?family=true", "delete").status_code == 204
    dead = {each["id"] for each in (stolen, rotated, child, taken)}
    assert set(ApiToken.objects.exclude(revoked_at=None).values_list("pk", flat=True)) == dead
    assert [call(each["token"]).status_code for each in (stolen, rotated, child, taken)] == [401] * 4
    assert call(first.text).status_code == 200


def test_a_token_is_revoked_alone_unless_the_caller_says_otherwise(operator: User) -> None:
    first = issued(operator, READ)
    new = call(first.text, "tokens/self/rotate", "post", {}).json()
    assert call(first.text, f"tokens/{first.token.pk}", "delete").status_code == 204
    assert call(new["token"]).status_code == 200


def test_a_rotated_token_has_at_most_the_present_rights_of_its_user(operator: User) -> None:
    old = issued(operator, READ, RUN, MANAGE, REPORT, reporter="ncsa")
    roles.revoke(operator, Grant(UserRole.OPERATOR))
    new = call(old.text, "tokens/self/rotate", "post", {}).json()
    assert (new["scopes"], new["dropped_scopes"]) == ([READ], [RUN, REPORT, MANAGE])
    assert new["reporter"] is None
    roles.grant(operator, Grant(UserRole.OPERATOR))
    assert call(new["token"], "reporters/ncsa/codes", "post").status_code == 403


def test_a_token_at_a_site_that_its_user_lost_loses_the_scopes_that_are_bound(operator: User) -> None:
    bob = User.objects.create_user("bob")
    for site in ("ncsa", "sdsc"):
        roles.grant(bob, Grant(UserRole.SITE_ADMIN, site))
    token = issued(User.objects.get(pk=bob.pk), READ, RUN, site="ncsa").token
    roles.revoke(bob, Grant(UserRole.SITE_ADMIN, "ncsa"))
    new = tokens.rotate(token, timezone.now(), caller=None).token
    assert (new.scopes, str(new.site)) == ([READ], "ncsa")


def test_a_token_without_a_right_that_is_left_is_not_rotated(operator: User) -> None:
    old = issued(operator, RUN)
    roles.revoke(operator, Grant(UserRole.OPERATOR))
    with pytest.raises(ExceedsRights, match=r"the present roles of ada permit none of the scopes .*: run"):
        tokens.rotate(old.token, timezone.now(), caller=None)
    old.token.refresh_from_db()
    assert old.token.rotated_at is None


def test_a_program_without_a_right_that_is_left_is_refused_before_its_body_is_read(operator: User) -> None:
    text = issued(operator, RUN).text
    assert call(text, "tokens/self/rotate", "post", {"unknown": 1}).status_code == 422
    roles.revoke(operator, Grant(UserRole.OPERATOR))
    refused = call(text, "tokens/self/rotate", "post", {"unknown": 1})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")


def test_rotation_does_not_exceed_the_number_of_tokens_of_a_user(operator: User) -> None:
    token = issued(operator).token
    ApiToken.objects.bulk_create(
        ApiToken(user=operator, name="x", sha256=f"{number}") for number in range(tokens.MOST_TOKENS - 1)
    )
    with pytest.raises(TooManyTokens, match="revoke some first, or rotate without grace"):
        tokens.rotate(token, timezone.now(), caller=None)
    tokens.rotate(token, timezone.now(), grace=timedelta(0), caller=None)


def test_a_revoked_token_and_the_ancestors_of_valid_ones_stay_listed(operator: User) -> None:
    now = timezone.now()
    revoked, first = issued(operator, now=now).token, issued(operator, days=30, now=now)
    tokens.revoke(ApiToken.objects.filter(pk=revoked.pk), now)
    second = tokens.rotate(first.token, now, caller=None)
    tokens.rotate(second.token, now, caller=None)
    assert tokens.expire(now + 364 * DAY) == 0
    ApiToken.objects.filter(rotated_at=None, revoked_at=None).update(expires_at=None)
    assert tokens.expire(now + 900 * DAY) == 1  # the revoked one: the others lead to one that is valid


def test_a_user_revokes_a_family_on_the_page(operator: User) -> None:
    browser = Client()
    browser.force_login(operator)
    token = issued(operator, days=30).token
    shown = browser.get("/account/tokens/").content.decode()
    assert "with rotation" in shown
    assert "Revoke family" not in shown
    new = browser.post(f"/account/tokens/{token.pk}/rotate/").context["issued"]
    assert "Revoke family" in browser.get("/account/tokens/").content.decode()
    answer = browser.post(f"/account/tokens/{token.pk}/revoke/", {"family": "1"}, follow=True)
    assert "is revoked with 1 that came of it" in answer.content.decode()
    assert call(new.text).status_code == 401


def test_the_page_and_the_command_say_what_a_rotated_token_lost_and_when_it_ends(operator: User) -> None:
    token = issued(operator, READ, RUN).token
    roles.revoke(operator, Grant(UserRole.OPERATOR))
    ApiToken.objects.filter(pk=token.pk).update(family_expires_at=timezone.now() + DAY)
    browser = Client()
    browser.force_login(operator)
    page = browser.post(f"/account/tokens/{token.pk}/rotate/").content.decode()
    assert "Without run, which your roles do not permit any more" in page
    assert "It ends with its family" in page
    ApiToken.objects.filter(pk=token.pk).update(rotated_at=None)
    out, err = StringIO(), StringIO()
    call_command("token", "rotate", token.prefix, stdout=out, stderr=err)
    assert out.getvalue().startswith("gcast_")
    assert "without run, which the roles of ada do not permit any more" in err.getvalue()
    assert "it ends with its family" in err.getvalue()
    out = StringIO()
    call_command("token", "revoke", token.prefix, "--family", stdout=out)
    assert "revoked, with 2 that came of it" in out.getvalue()


def test_the_record_has_the_ends_and_the_successor(operator: User) -> None:
    first = issued(operator, READ)
    new = call(first.text, "tokens/self/rotate", "post", {}).json()
    event = AuditEvent.objects.filter(outcome="done").latest("pk")
    assert new["prefix"] in str(event.changes)
    assert "family_expires_at" in str(event.changes)


def test_ping_keys_are_made_where_the_user_manages_reporters(operator: User) -> None:
    """The permission to run series everywhere does not suffice, nor the role of a site admin elsewhere."""
    bob = builders.user("bob", may_run=True)
    roles.grant(bob, Grant(UserRole.SITE_ADMIN, "ncsa"))
    text = ApiToken.objects.issue(bob, "x", [READ, MANAGE])
    browser = Client()
    browser.force_login(bob)
    for site, permitted in (("ncsa", True), ("sdsc", False)):
        resources = [builders.site(site)]
        series = builders.series(f"of-{site}", {"host": resources}, probe="reported", schedule="")
        made = call(text, f"series/{series.name}/ping-keys", "post", {"name": "cron"})
        assert made.status_code == (201 if permitted else 403)
        page = browser.post(f"/settings/ping-keys/{series.name}/", {"name": "cron"})
        assert page.status_code == (200 if permitted else 403)
    assert {key.series.name for key in PingKey.objects.all()} == {"of-ncsa"}


def test_the_documentation_says_that_every_token_will_do(operator: User) -> None:
    for operation in ("show_me", "rotate_own_token"):
        page = Client().get(f"/help/api/{operation}/").content.decode()
        assert "any token" in page
        assert 'id="token"' in page
