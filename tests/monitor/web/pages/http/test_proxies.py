"""Forwarded headers of other peers than the named proxies are removed before anything reads them."""

from __future__ import annotations

import ipaddress
import logging

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from pytest_django import Settings

from monitor.operations.web_server.client_address import client_address
from monitor.operations.web_server.proxies import ON_THIS_HOST, Proxies
from monitor.web.pages.http import proxies as middleware
from monitor.web.pages.http.proxies import ProxyMiddleware

PROXY, STRANGER, CLIENT = "192.0.2.80", "192.0.2.81", "203.0.113.7"
NAMED = Proxies((ipaddress.ip_network(PROXY),), is_unix=False)
FORWARDED = {
    "Forwarded": f"for={CLIENT};proto=https;host=evil.example.org",
    "X-Forwarded-For": CLIENT,
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "evil.example.org",
    "X-Forwarded-Port": "1",
    "X-Forwarded-Ssl": "on",
    "X-Real-Ip": CLIENT,
}


@pytest.fixture
def behind_tls(settings: Settings) -> Settings:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.SECURE_SSL_REDIRECT = True
    settings.GRIDCAST_PROXIES = ON_THIS_HOST
    return settings


def seen(peer: str, headers: dict[str, str]) -> HttpRequest:
    """Return the request as the application gets it."""
    requests: list[HttpRequest] = []

    def view(request: HttpRequest) -> HttpResponse:
        requests.append(request)
        return HttpResponse()

    request = RequestFactory().get("/", REMOTE_ADDR=peer, headers=headers)
    request.META["wsgi.url_scheme"] = "https"  # as a server that believed the header
    assert set(headers) <= set(request.headers), "an earlier middleware asked for one"
    ProxyMiddleware(view)(request)
    return requests[0]


@pytest.mark.parametrize("peer", [STRANGER, "127.0.0.1", "::1", ""])
def test_no_forwarded_header_of_a_stranger_arrives(settings: Settings, peer: str) -> None:
    settings.GRIDCAST_PROXIES = NAMED
    request = seen(peer, FORWARDED)
    assert not {name.title() for name in FORWARDED} & {name.title() for name in request.headers}
    assert not [key for key in request.META if "FORWARDED" in key or "REAL_IP" in key]
    assert (client_address(request), request.scheme) == (peer, "http")


def test_those_of_a_named_proxy_arrive(settings: Settings) -> None:
    settings.GRIDCAST_PROXIES = NAMED
    request = seen(PROXY, FORWARDED)
    assert {name.title() for name in FORWARDED} <= {name.title() for name in request.headers}
    assert client_address(request) == CLIENT


def test_without_tls_a_header_of_a_stranger_is_ignored_and_the_log_has_the_line_to_add(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    assert not str(settings.GRIDCAST_PROXIES)
    browser = Client(REMOTE_ADDR=PROXY, headers={"X-Forwarded-For": CLIENT, "X-Forwarded-Proto": "https"})
    with caplog.at_level(logging.WARNING, logger=middleware.__name__):
        assert {browser.get("/login/cancel/").status_code for _ in range(3)} == {302}
    (line,) = (text for text in caplog.messages if "ignored" in text)
    assert line == (
        f"X-Forwarded-For, X-Forwarded-Proto from {PROXY} ignored: it is no proxy of ours. If it is, its"
        f" clients count as one until you set GRIDCAST_PROXIES={PROXY}"
    )


def test_a_proxy_that_names_no_client_is_in_the_log(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.GRIDCAST_PROXIES = NAMED
    for headers in ({}, {"X-Forwarded-For": CLIENT, "X-Forwarded-Proto": "https"}):
        seen(PROXY, headers)
    assert not caplog.messages
    seen(PROXY, {"X-Forwarded-Proto": "https"})
    line = f"the proxy {PROXY} adds no X-Forwarded-For: its clients count as one until it does"
    assert caplog.messages == [line]


@pytest.mark.parametrize("name", FORWARDED)
def test_behind_tls_a_proxy_that_is_not_named_gets_the_line_to_add_and_no_redirect(
    behind_tls: Settings, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    line = f"GRIDCAST_PROXIES=127.0.0.0/8,::1,{PROXY},unix"
    browser = Client(REMOTE_ADDR=PROXY, headers={name: FORWARDED[name]})
    with caplog.at_level(logging.WARNING, logger=middleware.__name__):
        answers = [browser.get("/login/") for _ in range(3)]
    assert {answer.status_code for answer in answers} == {421}
    assert answers[0].content.decode().endswith(f": {line}\n")
    assert [line in text for text in caplog.messages if "ignored" in text] == [True], "once a minute"
    problem = browser.get("/api/v1/series").json()
    assert (problem["status"], problem["code"]) == (421, "unknown_proxy")
    assert line in problem["detail"]


def test_a_stranger_is_not_told_which_proxies_are_named(behind_tls: Settings) -> None:
    behind_tls.GRIDCAST_PROXIES = NAMED
    answer = Client(REMOTE_ADDR=STRANGER, headers={"X-Forwarded-Proto": "https"}).get("/login/")
    assert answer.status_code == 421
    assert PROXY not in answer.content.decode()
    assert f"GRIDCAST_PROXIES=...,{STRANGER}" in answer.content.decode()


def test_behind_tls_a_proxy_that_hides_the_scheme_is_told_so_and_not_redirected_without_end(
    behind_tls: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Client(REMOTE_ADDR="127.0.0.1", headers={"X-Forwarded-For": CLIENT})
    with caplog.at_level(logging.WARNING, logger=middleware.__name__):
        answers = [browser.get("/login/") for _ in range(3)]
    assert {answer.status_code for answer in answers} == {421}
    assert "let the TLS proxy send this header" in answers[0].content.decode()
    assert len([text for text in caplog.messages if "X-Forwarded-Proto" in text]) == 1, "once a minute"
    assert browser.get("/api/v1/series").json()["code"] == "unknown_scheme"
    assert browser.get("/healthz").status_code == 200


def test_behind_tls_a_stranger_without_such_headers_is_redirected_once(behind_tls: Settings) -> None:
    answer = Client(REMOTE_ADDR=STRANGER).get("/login/", headers={"host": "localhost"})
    assert (answer.status_code, answer["Location"]) == (301, "https://localhost/login/")


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "127.8.0.1", ""])
def test_behind_tls_a_proxy_on_this_host_needs_no_name(behind_tls: Settings, peer: str) -> None:
    browser = Client(REMOTE_ADDR=peer, headers={"X-Forwarded-Proto": "https", "X-Forwarded-For": CLIENT})
    answer = browser.get("/login/cancel/")
    assert (answer.status_code, answer["Location"]) == (302, "/login/")
