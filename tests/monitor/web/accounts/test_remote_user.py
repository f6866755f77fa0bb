"""A proxy names the user in a header; nothing else can."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from gunicorn.config import Config
from gunicorn.http import wsgi
from gunicorn.http.parser import RequestParser
from pytest_django import Settings

from monitor.models import AuditEvent
from monitor.operations.web_server.proxies import Proxies
from monitor.web.accounts import remote_user
from monitor.web.accounts.environment import RemoteUser
from monitor.web.accounts.remote_user import RemoteUserMiddleware
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import log_in
from tests.monitor.web.accounts.test_factor_races import at_once
from tests.monitor.web.pages import builders

PROXY, STRANGER = "192.0.2.80", "192.0.2.81"
PROXIES = Proxies(tuple(map(ipaddress.ip_network, (f"{PROXY}/32", "2001:db8::/64"))), is_unix=False)
CONFIGURED = RemoteUser("Remote-User", PROXIES, "")
Visit = Callable[..., Any]


@pytest.fixture
def visit(settings: Settings, db: None) -> Visit:
    """Send a request through all middleware; return what the page knows of the user."""
    settings.GRIDCAST_REMOTE_USER, settings.GRIDCAST_PROXIES = CONFIGURED, PROXIES

    def sent(
        peer: str = PROXY, path: str = "/account/", browser: Client | None = None, **headers: str
    ) -> Any:
        return (browser or Client()).get(path, REMOTE_ADDR=peer, headers=headers)

    return sent


def user_of(answer: Any) -> str | None:
    """Return the user that a page was shown to; None if it was not shown."""
    return answer.context["user"].get_username() if answer.status_code == 200 else None


def test_the_proxy_names_the_user(visit: Visit, reader: User) -> None:
    answer = visit(remote_user=str(reader))
    assert user_of(answer) == str(reader)
    assert "Log out" not in answer.content.decode(), "there is no session to end"
    assert not answer.cookies.get("sessionid")
    assert user_of(visit("2001:db8::7", remote_user=str(reader))) == str(reader)
    assert user_of(visit(f"::ffff:{PROXY}", remote_user=str(reader))) == str(reader)


def test_the_header_of_any_other_client_is_ignored_and_logged(
    visit: Visit, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger=remote_user.__name__):
        browser = Client()
        for peer in (STRANGER, "127.0.0.1", "", "::1"):
            answer = visit(peer, browser=browser, remote_user=str(reader), x_forwarded_for=PROXY)
            assert answer["Location"] == "/login/?next=/account/", peer
    lines = [line for line in caplog.messages if "Remote-User ignored" in line]
    assert len(lines) == 1, "one line a minute"
    denials = set(AuditEvent.objects.values_list("outcome", "user", "action"))
    assert denials == {("denied", str(reader), "login of a remote user")}
    assert f"GRIDCAST_PROXIES and GRIDCAST_REMOTE_USER_PROXIES do not both have {STRANGER}" in lines[0]


def test_another_proxy_that_may_not_name_users_is_ignored_as_any_client(
    visit: Visit, settings: Settings, reader: User
) -> None:
    settings.GRIDCAST_PROXIES = PROXIES.with_peer(STRANGER)
    assert visit(STRANGER, remote_user=str(reader))["Location"] == "/login/?next=/account/"
    settings.GRIDCAST_PROXIES = Proxies((), is_unix=False)
    assert visit(remote_user=str(reader))["Location"] == "/login/?next=/account/"


def test_a_proxy_at_a_unix_socket_names_users(visit: Visit, settings: Settings, reader: User) -> None:
    proxies = Proxies((), is_unix=True)
    settings.GRIDCAST_REMOTE_USER, settings.GRIDCAST_PROXIES = replace(CONFIGURED, proxies=proxies), proxies
    assert user_of(visit("", remote_user=str(reader))) == str(reader)
    assert visit(remote_user=str(reader)).status_code == 302


def test_without_the_header_there_is_no_user(visit: Visit, reader: User) -> None:
    browser = Client()
    assert user_of(visit(browser=browser, remote_user=str(reader))) == str(reader)
    assert visit(browser=browser)["Location"] == "/login/?next=/account/"


def test_the_header_wins_over_a_session(visit: Visit, reader: User) -> None:
    browser = Client(REMOTE_ADDR=PROXY)
    builders.user(f"{reader}-local", password=builders.PASSWORD)
    log_in(browser, f"{reader}-local")
    assert user_of(visit(browser=browser)) == f"{reader}-local"
    assert user_of(visit(browser=browser, remote_user=str(reader))) == str(reader)
    assert visit(browser=browser, remote_user="ghost").status_code == 403


def test_the_header_holds_for_the_api(visit: Visit, reader: User) -> None:
    assert visit(path="/api/v1/series", remote_user=str(reader)).status_code == 200
    assert visit(STRANGER, "/api/v1/series", remote_user=str(reader)).status_code == 401
    assert visit(path="/api/v1/series", remote_user="ghost").status_code == 401


@pytest.mark.parametrize(
    "name", ["", "ghost", "a,b", "a b", "a\\b", "a\N{LATIN SMALL LETTER E WITH ACUTE}", "a" * 151]
)
def test_a_name_without_an_account_gets_a_page_that_says_so(visit: Visit, name: str) -> None:
    answer = visit(remote_user=name)
    assert (answer.status_code, "No account" in answer.content.decode()) == (403, True)
    assert not User.objects.filter(username=name).exists()


def _disabled(user: User) -> str:
    User.objects.filter(pk=user.pk).update(is_active=False)
    return user.get_username()


def _of_the_provider(user: User) -> str:
    identity_of(user, "operator")
    return user.get_username()


REFUSALS: dict[str, tuple[Callable[[User], str], str, str]] = {
    "disabled": (_disabled, "the account is disabled", "manage.py account enable NAME."),
    "no role here": (_of_the_provider, "no role is granted to the account here", "access grant NAME ROLE."),
    "another case": (
        lambda user: user.get_username().upper(),
        "gridcast has no account of this name, only one that looks alike",
        "the administrator of the proxy can let it send that spelling",
    ),
    "unknown": (
        lambda _: "ghost",
        "gridcast has no account of this name",
        "manage.py account create ghost --no-password --role ROLE.",
    ),
    "no name": (
        lambda _: "a b",
        "this is no user name: expected 1 to 150 ASCII letters",
        "The administrator of the proxy can let it send such a name.",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refused_name_is_told_and_logged_with_its_reason_and_its_remedy(
    visit: Visit, reader: User, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    happens, reason, remedy = REFUSALS[case]
    name = happens(reader)
    answer = visit(remote_user=name)
    assert answer.status_code == 403
    for words in (reason, remedy):
        assert words.replace("NAME", str(reader)) in answer.content.decode()
    assert f"remote user refused: {name!r}: {reason.replace('NAME', str(reader))}" in caplog.text


def test_the_other_spelling_is_in_the_log_and_not_on_the_page(
    visit: Visit, reader: User, caplog: pytest.LogCaptureFixture
) -> None:
    answer = visit(remote_user=str(reader).upper())
    assert str(reader) not in answer.content.decode()
    assert f"only one that looks alike: {str(reader)!r}" in caplog.text


def test_accounts_are_made_if_a_role_is_configured(visit: Visit, settings: Settings) -> None:
    settings.GRIDCAST_REMOTE_USER = RemoteUser("X-Forwarded-User", PROXIES, "viewer")
    assert user_of(visit(x_forwarded_user="ada@GRID")) == "ada@GRID"
    user = User.objects.get(username="ada@GRID")
    assert [group.name for group in user.groups.all()] == ["viewer"]
    assert not user.has_usable_password()
    event = AuditEvent.objects.get()
    assert (event.user, event.action) == ("ada@GRID", "account of a remote user")
    assert [change["kind"] for change in event.changes] == ["account", "role"]
    assert visit(path="/nowhere/", x_forwarded_user="bob").status_code == 404
    assert AuditEvent.objects.latest("pk").user == "bob"
    assert visit(STRANGER, x_forwarded_user="eve").status_code == 302
    assert not User.objects.filter(username="eve").exists()


@pytest.mark.parametrize(
    ("there", "named"), [("reader", "READER"), ("wei\N{LATIN SMALL LETTER SHARP S}", "weiss")]
)
def test_no_account_is_made_whose_name_looks_like_another(
    visit: Visit, settings: Settings, there: str, named: str
) -> None:
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", PROXIES, "viewer")
    builders.user(there)
    assert visit(remote_user=named).status_code == 403
    assert User.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("names", [["ada", "ADA", "Ada", "aDa"], ["ada"] * 4])
def test_of_names_that_look_alike_one_gets_an_account_also_at_once(
    visit: Visit, settings: Settings, names: list[str]
) -> None:
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", PROXIES, "viewer")
    answers = at_once([partial(visit, remote_user=name) for name in names])
    made = User.objects.get().get_username()
    assert [answer.status_code for answer in answers] == [200 if name == made else 403 for name in names]
    assert AuditEvent.objects.filter(action="account of a remote user").count() == 1


def test_a_user_that_the_proxy_logs_in_confirms_by_its_password_here(visit: Visit, reader: User) -> None:
    browser = Client(REMOTE_ADDR=PROXY)
    browser.get("/account/", headers={"remote-user": str(reader)})
    asked = visit(path="/account/app/", browser=browser, remote_user=str(reader))
    assert asked["Location"].startswith("/account/confirm/password/")
    form = {"password": builders.PASSWORD, "next": "/account/app/"}
    confirmed = browser.post("/account/confirm/password/", form, headers={"remote-user": str(reader)})
    assert confirmed["Location"] == "/account/app/"
    assert visit(path="/account/app/", browser=browser, remote_user=str(reader)).status_code == 200
    other = builders.user(f"{reader}-other", password=builders.PASSWORD)
    assert visit(path="/account/app/", browser=browser, remote_user=str(other)).status_code == 302


def test_it_is_off_by_default(settings: Settings, reader: User) -> None:
    assert settings.GRIDCAST_REMOTE_USER is None
    with pytest.raises(MiddlewareNotUsed):
        RemoteUserMiddleware(lambda _: HttpResponse())
    answer = Client().get("/account/", REMOTE_ADDR=PROXY, headers={"remote-user": str(reader)})
    assert answer.status_code == 302


@pytest.mark.parametrize(
    ("sent", "user"),
    [
        (["Remote-User: ada"], "ada"),
        (["remote-user: ada"], "ada"),
        (["Remote_User: eve"], None),
        (["Remote_User: eve", "Remote-User: ada"], "ada"),
        (["Remote-User: ada", "REMOTE_USER: eve"], "ada"),
        (["Remote-User: ada", "Remote-User: eve"], "refused"),
        (["Remote-User:", "Remote-User: eve"], "refused"),
        (["Http-Remote-User: eve"], None),
    ],
)
def test_gunicorn_passes_no_forged_header_on(
    settings: Settings, db: None, sent: list[str], user: str | None
) -> None:
    """What the proxy adds, and what clients send for it to pass on, read by the server that we use."""
    settings.GRIDCAST_REMOTE_USER = CONFIGURED
    for name in ("ada", "eve"):
        builders.user(name)
    seen: list[str | None] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request.user.get_username() or None)
        return HttpResponse()

    factory = RequestFactory()
    request = factory.generic("GET", "/")
    request.META = environment(sent)
    request.user = AnonymousUser()
    answer = RemoteUserMiddleware(view)(request)
    assert (seen or ["refused"]) == [user]
    assert (answer.status_code == 403) == (user == "refused")


def environment(headers: list[str]) -> dict[str, Any]:
    """Return the WSGI environment that gunicorn makes of a request of the proxy."""
    configuration = Config()
    raw = "\r\n".join(["GET / HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()
    request = next(RequestParser(configuration, iter([raw]), (PROXY, 50_000)))
    _, environ = wsgi.create(request, None, (PROXY, 50_000), ("127.0.0.1", 8000), configuration)
    return dict(environ)
