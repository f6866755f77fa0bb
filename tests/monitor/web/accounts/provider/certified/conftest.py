"""The certified provider, which gridcast is configured for, with a new user in each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from monitor.web.accounts.environment import IdentityProvider
from tests.monitor.web.accounts.provider.certified.certified_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    CertifiedProvider,
    ProviderBrowser,
    running_certified_provider,
)

SCOPES = ("openid", "profile", "email", "groups")
ROLES = (("operator", "/grid/ops"), ("viewer", "/grid/users"))
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[CertifiedProvider]:
    with running_certified_provider() as provider:
        yield provider


@pytest.fixture
def certified(running: CertifiedProvider, settings: Settings, db: None) -> CertifiedProvider:
    """The provider without faults, which gridcast is configured for."""
    running.proxy.faults.clear()
    running.proxy.asked.clear()
    running.proxy.received.clear()
    settings.GRIDCAST_IDENTITY_PROVIDER = IdentityProvider(
        running.issuer, CLIENT_ID, CLIENT_SECRET, "Grid Login", SCOPES, "groups", ROLES
    )
    return running


@pytest.fixture
def there(certified: CertifiedProvider) -> ProviderBrowser:
    """The browser of a new user that may read, at the provider."""
    number = next(_numbers)
    user = ProviderBrowser(f"certified-{number}")
    name = f"certified-user-{number}"
    certified.knows(user.subject, preferred_username=name, groups=["/grid/users"])
    return user
