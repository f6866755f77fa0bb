"""Counted states: whatever changes, and whenever it is counted, readers see the states of now."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from monitor.depot.rollups import mark_dirty, worker
from monitor.depot.series.arrays_sql import sites_of_suites
from monitor.models import (
    Binding,
    OutcomeCount,
    Reporter,
    Resource,
    Run,
    Series,
    SeriesStanding,
    StandingChange,
    StandingCount,
    Suite,
)
from monitor.models.run import ENDED, State
from monitor.web.matrix.matrix import overview_of_groups
from monitor.web.places.reporters import list_reporters
from monitor.web.places.site_list import list_sites
from monitor.web.status import standings
from tests.by_night import by_night
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)


@pytest.fixture
def now() -> datetime:
    return timezone.now().replace(microsecond=0)


@pytest.fixture
def resources(db: None) -> list[Resource]:
    return builders.sites(3)


@pytest.fixture
def reader(db: None) -> User:
    return builders.user("reader")


def ended(series: Series, slot: datetime, state: State, resource: str = "") -> None:
    """Store the end of a run in *slot*, instead of that before."""
    mark_dirty.mark([(series.pk, slot)])
    Run.objects.filter(series=series, slot=slot).delete()
    Run.objects.create(
        id=uuid.uuid4(),
        series=series,
        slot=slot,
        due_at=slot,
        ended_at=slot,
        state=state,
        failed_resource=resource,
    )


def shown(user: User, now: datetime) -> list[str]:
    """Return what pages show that read counts; as texts, for NaN does not equal itself."""
    suites = ["", *Suite.objects.filter(name="other").values_list("name", flat=True)]
    sites = [(line.site, line.failing, line.totals) for line in list_sites(user, now).lines]
    reporters = list_reporters(Reporter.objects.all(), user, now)
    return [
        *(repr(overview_of_groups(user, now, suite=suite)) for suite in suites),
        repr(sites),
        repr(sites_of_suites()),
        repr([(each.name, each.series, each.latest) for each in reporters]),
    ]


def shown_without_counts(user: User, now: datetime) -> list[str]:
    """Return what is shown if no series has been counted yet."""
    with transaction.atomic():
        for model in (StandingCount, SeriesStanding, OutcomeCount, StandingChange):
            model.objects.all().delete()
        StandingChange.objects.bulk_create(
            StandingChange(series=key) for key in Series.objects.values_list("pk", flat=True)
        )
        content = shown(user, now)
        transaction.set_rollback(True)
    return content


class Operations:
    """Random changes of a grid."""

    def __init__(self, draw: random.Random, resources: list[Resource], now: datetime) -> None:
        self.draw, self.resources, self.now = draw, resources, now
        self.number = 0

    def some_series(self) -> Series:
        return self.draw.choice(list(Series.objects.order_by("pk")))

    def end_a_run(self) -> None:
        state = self.draw.choice([*ENDED, State.PASSED, State.FAILED])
        failed_at = self.draw.choice(["", "unknown", *(each.name for each in self.resources)])
        slot = self.now - self.draw.choice([0, 1, 3, 50, 61, 90, 1500]) * MINUTE
        is_failure = state in {State.FAILED, State.TIMED_OUT}
        ended(self.some_series(), slot, state, failed_at if is_failure else "")

    def run_often(self) -> None:
        series = self.some_series()
        for ago in range(25):
            ended(series, self.now - 2 * ago * MINUTE, State.PASSED)

    def change_a_series(self) -> None:
        series = self.some_series()
        changes: list[Callable[[], None]] = [
            lambda: setattr(series, "suite", builders.suite(self.draw.choice(["main", "other", "closed"]))),
            lambda: setattr(series, "enabled", not series.enabled),
            lambda: setattr(series, "schedule", self.draw.choice(["* * * * *", "0 0 1 * *", "H/2 * * * *"])),
            lambda: setattr(series, "limit_seconds", self.draw.choice([1.0, 90_000.0])),
            lambda: setattr(series, "probe", self.draw.choice(["circle", "gather", "import-lines"])),
            lambda: setattr(series, "reporter", Reporter.objects.get_or_create(name="another")[0]),
        ]
        self.draw.choice(changes)()
        series.save()

    def create_a_series(self) -> None:
        self.number += 1
        some = self.draw.sample(self.resources, self.draw.randint(1, len(self.resources)))
        builders.circle(f"new-{self.number}", some, in_suite=self.draw.choice(["main", "other"]))

    def unbind(self) -> None:
        bindings = list(Binding.objects.order_by("pk"))
        if bindings:
            self.draw.choice(bindings).delete()

    def move_a_resource(self) -> None:
        resource = self.draw.choice(self.resources)
        resource.site = self.draw.choice(self.resources).site
        resource.save()

    def delete_a_series(self) -> None:
        series = self.some_series()
        if Series.objects.count() > 2:
            Run.objects.filter(series=series).delete()
            series.delete()

    def gather(self) -> None:
        worker.gather()

    def recount(self) -> None:
        standings.recount_due(timezone.now())

    def any(self) -> None:
        common = [self.end_a_run] * 6 + [self.gather, self.recount] * 2
        rare = [
            self.run_often, self.change_a_series, self.create_a_series, self.unbind, self.move_a_resource,
            self.delete_a_series,
        ]  # fmt: skip
        self.draw.choice(common + rare)()


@pytest.mark.parametrize(("seed", "rounds"), [(0, 2), *(by_night(seed, 6) for seed in range(1, 40))])
def test_counts_and_states_agree_whatever_happens(
    resources: list[Resource], reader: User, now: datetime, seed: int, rounds: int
) -> None:
    operations = Operations(random.Random(seed), resources, now)
    builders.circles(["ring-1", "ring-2"], resources)
    builders.circles(["single-1", "single-2"], resources[:1], in_suite="other")
    builders.circles(["closed-1"], resources[1:], in_suite="closed")
    builders.suite("closed").viewers.add(Group.objects.create(name="few"))
    for _ in range(rounds):
        for _ in range(8):
            operations.any()
        later = timezone.now() + operations.draw.choice([0, 0, 30, 2000]) * MINUTE
        assert shown(reader, later) == shown_without_counts(reader, later)
    operations.gather()
    operations.recount()
    sums = Counter(SeriesStanding.objects.values_list("suite", flat=True))
    counted = StandingCount.objects.filter(site=0, n__gt=0).values_list("suite", "n")
    assert sums == sum((Counter({suite: n}) for suite, n in counted), Counter())
    assert not StandingCount.objects.filter(n__lt=0).exists()


def test_a_counted_grid_has_no_series_to_read(resources: list[Resource], reader: User, now: datetime) -> None:
    rings = builders.circles([f"ring-{number}" for number in range(5)], resources)
    for series in rings:
        ended(series, now, State.PASSED)
    assert len(standings.outdated_series(now)) == 5
    worker.gather()
    standings.recount_due(now)
    assert standings.outdated_series(now) == []
    assert overview_of_groups(reader, now).series_count == 5


def test_a_result_is_counted_as_stale_once_its_schedule_says_so(
    resources: list[Resource], reader: User, now: datetime
) -> None:
    (ring,) = builders.circles(["ring"], resources, schedule="* * * * *", limit_seconds=60)
    ended(ring, now, State.PASSED)
    worker.gather()
    standings.recount_due(now)
    later = now + 10 * MINUTE
    overviews = [overview_of_groups(reader, time) for time in (now, later)]
    assert [(each.current_count, each.stale_count) for each in overviews] == [(1, 0), (0, 1)]
    standings.recount_due(later)
    assert standings.outdated_series(later) == []
    overviews = [overview_of_groups(reader, time) for time in (now, later)]
    assert [(each.current_count, each.stale_count) for each in overviews] == [(1, 0), (0, 1)]


def test_runs_are_counted_for_some_hours_only(resources: list[Resource], now: datetime) -> None:
    (ring,) = builders.circles(["ring"], resources)
    ended(ring, now - 4 * 60 * MINUTE, State.PASSED)
    ended(ring, now, State.PASSED)
    worker.gather()
    standings.recount_due(now)
    assert list(OutcomeCount.objects.values_list("slot", "outcome", "n")) == [(now, "p", 1)]
    StandingChange.objects.create(series=ring.pk)
    standings.recount_due(now + 3 * 60 * MINUTE)
    assert not OutcomeCount.objects.exists()
