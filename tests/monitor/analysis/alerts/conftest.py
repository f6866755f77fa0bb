"""A grid of sites and a receiver of messages, for tests of alerts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitor.models import Series
from tests.monitor.failing_sites import grid_of_sites
from tests.monitor.receivers import Hook, hook


@pytest.fixture
def grid(circle: Series) -> dict[str, Series]:
    return grid_of_sites(circle)


@pytest.fixture
def server() -> Iterator[Hook]:
    with hook() as running_hook:
        yield running_hook
