"""Every kind of row meets every page, every reading operation and everybody who may look.

By day a sample, drawn by ``GRIDCAST_CROSS_SEED``, which a failure prints; whole at night.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.conftest import empty_tables
from tests.monitor.cross import crowded
from tests.monitor.cross.crowded import CrowdedDepot
from tests.monitor.cross.crossing import Meeting, crossed
from tests.monitor.cross.visits import Visit, admin_visits, all_visits

SEED = int(os.environ.get("GRIDCAST_CROSS_SEED") or random.randrange(10**6))
SHARES = 24  # of the night
ROWS_OF_ROUTE = int(os.environ.get("GRIDCAST_CROSS_ROWS", "1"))

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def depot(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[CrowdedDepot]:
    """One depot for all tests, which only read."""
    with django_db_blocker.unblock():
        yield crowded.build(random.Random(SEED))
        empty_tables()


@pytest.fixture
def draw() -> random.Random:
    print(f"GRIDCAST_CROSS_SEED={SEED}")  # noqa: T201  # pytest shows it with a failure
    return random.Random(SEED)


def by_route(visits: list[Visit]) -> dict[str, list[Visit]]:
    grouped: dict[str, list[Visit]] = defaultdict(list)
    for visit in visits:
        grouped[visit.route].append(visit)
    return grouped


def test_a_sample(depot: CrowdedDepot, draw: random.Random) -> None:
    """Of each route a few rows, one as an administrator and the others as anybody."""
    meetings = []
    for visits in by_route(all_visits(depot)).values():
        for number, visit in enumerate(draw.sample(visits, min(ROWS_OF_ROUTE + 1, len(visits)))):
            identity = draw.choice(depot.identities) if number % 2 else depot.administrator
            meetings.append(Meeting(visit, identity))
    found = crossed(meetings, draw, further=0)
    assert not found, "\n".join(found)
