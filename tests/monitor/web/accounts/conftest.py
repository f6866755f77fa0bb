"""Users with passwords, and browsers at addresses of their own: failed logins are counted by address."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.monitor.web.pages import builders

_addresses = (f"198.18.{high}.{low}" for high, low in itertools.product(range(256), range(1, 255)))
_names = (f"reader-{number}" for number in itertools.count(1))


@pytest.fixture
def reader(db: None) -> User:
    """A user whose name no other test has used: failed logins are counted by name as well."""
    return builders.user(next(_names), password=builders.PASSWORD)


@pytest.fixture
def browser_elsewhere() -> Callable[[], Client]:
    """Make browsers that know nothing yet, each at an address of its own."""
    return lambda: Client(REMOTE_ADDR=next(_addresses))


@pytest.fixture
def browser(browser_elsewhere: Callable[[], Client]) -> Client:
    return browser_elsewhere()
