"""A provider for each test, which gridcast is configured for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from monitor.web.accounts.environment import IdentityProvider
from tests.monitor.web.accounts.provider.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    OpenIdProvider,
    running_provider,
)

_numbers = itertools.count(1)


@pytest.fixture
def op(settings: Settings, db: None) -> Iterator[OpenIdProvider]:
    """Run a provider whose user is new here and may read."""
    with running_provider() as provider:
        settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
            provider.issuer, CLIENT_ID, CLIENT_SECRET, "Grid Login", ("openid",), "groups", (("viewer", "a"),)
        )
        number = next(_numbers)
        provider.claims = {"sub": f"sub-{number}", "preferred_username": f"op-user-{number}", "groups": ["a"]}
        yield provider
