"""What a token issues while its family is revoked ends with the family."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone

from monitor.depot.access import tokens
from monitor.depot.access.tokens import IssuedToken, TokenEnded, TokenRequest
from monitor.models import ApiToken
from monitor.models.token import MANAGE, READ
from tests.databases import blocks_another_session
from tests.waiting import eventually

Act = Callable[[IssuedToken], None]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def first() -> IssuedToken:
    user = User.objects.create_superuser("ada")
    return tokens.issue(TokenRequest(user, "first", [READ, MANAGE]), timezone.now(), issuer=None)


def issue(first: IssuedToken) -> None:
    request = TokenRequest(first.token.user, "child", [READ])
    tokens.issue(request, timezone.now(), issuer=first.token.user, by=first.token)


def rotate(first: IssuedToken) -> None:
    tokens.rotate(first.token, timezone.now(), caller=None)


def revoke(first: IssuedToken) -> None:
    tokens.revoke(ApiToken.objects.family(first.token), timezone.now())


@pytest.mark.parametrize("derive", [issue, rotate])
@pytest.mark.parametrize("is_revoked_first", [True, False])
def test_no_token_survives_its_family(first: IssuedToken, derive: Act, is_revoked_first: bool) -> None:
    earlier, later = (revoke, derive) if is_revoked_first else (derive, revoke)
    has_locked = threading.Event()

    def act() -> None:
        try:
            assert has_locked.wait(60)
            with suppress(TokenEnded):
                later(first)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        acting = thread.submit(act)
        with transaction.atomic():
            earlier(first)
            has_locked.set()
            assert eventually(blocks_another_session)
        acting.result()
    assert not ApiToken.objects.usable(timezone.now()).exists()
