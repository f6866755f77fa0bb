"""Requests of programs open no session; all other requests do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitor.models import ApiToken
from monitor.models.token import READ
from monitor.operations.web_server.proxies import ON_THIS_HOST
from monitor.web.accounts.environment import RemoteUser

PATH = "/api/v1/me"


@pytest.fixture
def bearer(reader: User) -> Mapping[str, str]:
    token = ApiToken.objects.issue(reader, "program", [READ])
    return {"Authorization": f"Bearer {token}"}


def test_a_request_with_a_token_opens_no_session(bearer: Mapping[str, str], reader: User) -> None:
    answer = Client().get(PATH, headers=bearer)
    assert answer.status_code == 200
    assert answer.wsgi_request.user == reader
    assert not hasattr(answer.wsgi_request, "session")


def test_an_invalid_token_is_refused_as_before(db: None) -> None:
    answer = Client().get(PATH, headers={"Authorization": "Bearer gcast_unknown"})
    assert answer.status_code == 401
    assert not answer.wsgi_request.user.is_authenticated


def test_a_session_counts_beside_an_invalid_token(reader: User) -> None:
    browser = Client()
    browser.force_login(reader)
    assert browser.get(PATH, headers={"Authorization": "Bearer gcast_unknown"}).status_code == 200


def test_a_page_has_a_session_in_spite_of_a_token(bearer: Mapping[str, str]) -> None:
    assert hasattr(Client().get("/", headers=bearer).wsgi_request, "session")


def test_a_user_named_by_a_proxy_counts_beside_an_invalid_token(settings: Settings, reader: User) -> None:
    settings.GRIDCAST_PROXIES = ON_THIS_HOST
    settings.GRIDCAST_REMOTE_USER = RemoteUser("Remote-User", ON_THIS_HOST, "")
    headers = {"Authorization": "Bearer gcast_unknown", "Remote-User": str(reader)}
    assert Client().get(PATH, headers=headers).status_code == 200
