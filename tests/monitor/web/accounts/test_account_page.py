"""One's own account: profile, password, sessions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from monitor.depot.access import roles
from monitor.models import Incident, IncidentSeries
from monitor.web.accounts import sessions, throttle
from tests.monitor.web.accounts.logins import is_logged_in, log_in
from tests.monitor.web.pages import builders

Browsers = Callable[[], Client]
NEW_PASSWORD = "another long secret"


def logged_in(browser: Client, user: User) -> Client:
    log_in(browser, user)
    return browser


def test_the_page_shows_the_user_and_the_roles(browser: Client, reader: User) -> None:
    reader.groups.add(Group.objects.get_or_create(name="operator")[0], Group.objects.create(name="no role"))
    page = logged_in(browser, reader).get("/account/").content.decode()
    assert str(reader) in page
    assert "operator" in page
    assert "no role" not in page


def test_a_scheduler_has_the_account_page_only(browser: Client, reader: User) -> None:
    roles.grant(reader, roles.parse_grant("scheduler"))
    assert log_in(browser, reader)["Location"] == "/account/"
    assert "scheduler" in browser.get("/account/").content.decode()
    assert browser.get("/alerts/").status_code == 403


def test_changing_the_password_ends_all_other_sessions(browser_elsewhere: Browsers, reader: User) -> None:
    here, there = (logged_in(browser_elsewhere(), reader) for _ in range(2))
    form = {"old_password": "wrong", "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    assert "was entered incorrectly" in here.post("/account/password/", form).content.decode()
    assert is_logged_in(there)
    here.post("/account/password/", {**form, "old_password": builders.PASSWORD})
    assert is_logged_in(here)
    assert not is_logged_in(there)
    assert [session.session_key for session in sessions.of_user(reader)] == [here.session.session_key]
    log_in(there, reader, NEW_PASSWORD)
    assert is_logged_in(there)


def test_a_user_without_password_has_none_to_change(browser: Client, reader: User) -> None:
    reader.set_unusable_password()
    reader.save()
    browser.force_login(reader)
    answer = browser.get("/account/password/")
    assert (answer.status_code, "Your account has no password" in answer.content.decode()) == (403, True)


def test_a_user_ends_one_session_or_all_others(browser_elsewhere: Browsers, reader: User) -> None:
    here, laptop, phone = (logged_in(browser_elsewhere(), reader) for _ in range(3))
    page = here.get("/account/").content.decode()
    assert page.count("198.18.") == 3
    assert page.count("this session") == 1
    listed = UserSession.objects.get(session_key=laptop.session.session_key)
    here.post("/account/sessions/end/", {"session": str(listed.pk)})
    assert [is_logged_in(browser) for browser in (here, laptop, phone)] == [True, False, True]
    here.post("/account/sessions/end/", {"session": "others"})
    assert [is_logged_in(browser) for browser in (here, phone)] == [True, False]


@pytest.mark.parametrize("session", ["", "-1", "x", "99999999"])
def test_an_unknown_session_is_not_found(browser: Client, reader: User, session: str) -> None:
    answer = logged_in(browser, reader).post("/account/sessions/end/", {"session": session})
    assert answer.status_code == 404


def test_a_user_cannot_end_sessions_of_others(browser_elsewhere: Browsers, reader: User) -> None:
    stranger = builders.user(f"{reader}-stranger", password=builders.PASSWORD)
    victim = logged_in(browser_elsewhere(), reader)
    listed = UserSession.objects.get(user=reader)
    attacker = logged_in(browser_elsewhere(), stranger)
    assert attacker.post("/account/sessions/end/", {"session": str(listed.pk)}).status_code == 404
    attacker.post("/account/sessions/end/", {"session": "others"})
    assert is_logged_in(victim)


def test_a_user_has_a_limited_number_of_sessions(browser: Client, reader: User) -> None:
    before = timezone.now() - timedelta(days=1)
    rows = [
        UserSession(user=reader, ip="192.0.2.1", session_key=f"{reader}-{number}", last_seen_at=before)
        for number in range(sessions.MOST_SESSIONS + 5)
    ]
    UserSession.objects.bulk_create(rows)
    in_a_year = timezone.now() + timedelta(days=365)
    Session.objects.bulk_create(
        Session(session_key=row.session_key, session_data="", expire_date=in_a_year) for row in rows
    )
    sessions.note_login(request_with(browser), reader, None)
    assert sessions.of_user(reader).count() == sessions.MOST_SESSIONS - 1, "and the one that begins"


def request_with(browser: Client) -> HttpRequest:
    request = RequestFactory().get("/")
    request.session = browser.session
    return request


def test_the_old_password_cannot_be_guessed_without_end(browser: Client, reader: User) -> None:
    logged_in(browser, reader)
    form = {"old_password": "wrong", "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    answers = [browser.post("/account/password/", form).status_code for _ in range(11)]
    assert answers == [*[200] * 10, 429]


def test_the_last_use_of_a_session_is_noted_now_and_then(browser: Client, reader: User) -> None:
    logged_in(browser, reader)
    an_hour_ago = timezone.now() - timedelta(hours=1)
    UserSession.objects.filter(user=reader).update(last_seen_at=an_hour_ago)
    request = request_with(browser)
    assert request.session["_auth_user_id"]
    note = sessions.SessionUseMiddleware(lambda _: HttpResponse())
    note(request)
    noted = UserSession.objects.get(user=reader).last_seen_at
    assert noted > an_hour_ago
    UserSession.objects.filter(user=reader).update(last_seen_at=an_hour_ago)
    note(request)
    assert UserSession.objects.get(user=reader).last_seen_at == an_hour_ago, "not again within minutes"


def test_expired_sessions_are_deleted(browser_elsewhere: Browsers, reader: User) -> None:
    expired, live = (logged_in(browser_elsewhere(), reader) for _ in range(2))
    Session.objects.filter(session_key=expired.session.session_key).update(
        expire_date=timezone.now() - timedelta(seconds=1)
    )
    assert sessions.of_user(reader).count() == 1
    sessions.clear_expired()
    for model in (Session, UserSession):
        assert [row.session_key for row in model.objects.all()] == [live.session.session_key]


def test_an_administrator_ends_sessions_by_a_command(browser: Client, reader: User) -> None:
    logged_in(browser, reader)
    call_command("account", "end-sessions", str(reader))
    assert not is_logged_in(browser)
    with pytest.raises(CommandError, match="there is no user 'nobody-1'"):
        call_command("account", "unlock", "nobody-1")


def test_without_valkey_no_account_is_unlocked_and_the_command_says_so(
    reader: User, settings: Settings, tmp_path: Path
) -> None:
    settings.CELERY_BROKER_URL = f"redis+socket://{tmp_path}/nothing.sock"
    throttle.limits.cache_clear()
    try:
        with pytest.raises(CommandError, match="Valkey is unreachable, and each web process counts"):
            call_command("account", "unlock", str(reader))
    finally:
        throttle.limits.cache_clear()


def test_lists_begin_with_the_suite_and_the_site_that_the_account_page_chooses(
    browser: Client, reader: User
) -> None:
    builders.circles(["ring"], builders.sites(2))
    builders.circle("elsewhere", [builders.site("site3")])
    browser.force_login(reader)
    browser.post("/account/defaults/", {"site": "site1", "suite": "nowhere"})
    page = browser.get("/account/").content.decode()
    assert "there is no suite" in page
    assert 'name="site" value="site1"' in page
    listed = browser.get("/series/")
    assert [line.name for line in listed.context["overview"].lines] == ["ring"]
    assert 'href="?site="' in listed.content.decode()
    assert len(browser.get("/series/?site=").context["overview"].lines) == 2
    assert browser.get("/").context["chosen"].site == "site1"
    browser.post("/account/defaults/", {"site": ""})
    assert len(browser.get("/series/").context["overview"].lines) == 2


def test_incidents_assigned_to_the_user_are_listed(browser: Client, reader: User) -> None:
    now, (ring,) = timezone.now(), builders.circles(["ring"], builders.sites(2))
    incident = Incident.objects.create(
        since=now, opened_at=now, kind="series", name="ring", headline="Silent", assigned_to=str(reader)
    )
    IncidentSeries.objects.create(incident=incident, series=ring, since=now)
    browser.force_login(reader)
    assert f"/incidents/{incident.pk}/" in browser.get("/account/").content.decode()
