"""A small grid, and browsers of users with different permissions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.models import Resource, Series
from tests.monitor.pages import builders


@dataclass(frozen=True)
class Grid:
    """Four sites; Gather uses all, Circle the first three."""

    resources: list[Resource]
    gather: Series
    circle: Series


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def minute() -> timedelta:
    return timedelta(minutes=1)


@pytest.fixture
def grid(db: None) -> Grid:
    resources = builders.sites(4)
    return Grid(
        resources=resources,
        gather=builders.gather("gather-main", resources),
        circle=builders.circle("circle-ring", resources[:3]),
    )


@pytest.fixture
def reader(db: None) -> User:
    return builders.user("reader")


@pytest.fixture
def client(reader: User) -> Client:
    """A browser of a user without permissions."""
    browser = Client()
    browser.force_login(reader)
    return browser


@pytest.fixture
def runner(db: None) -> Client:
    """A browser of a user who may run series."""
    browser = Client()
    browser.force_login(builders.user("runner", may_run=True))
    return browser
