"""Model test: what is read of stored outcomes equals what is counted from the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.analysis.outcomes import worker
from monitor.analysis.outcomes.coverage import DAY, ceiling, floor
from monitor.analysis.outcomes.in_maintenance import failed_in_maintenance
from monitor.analysis.outcomes.read import RunOutcomes
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.core.db.timestamps import micros
from monitor.depot.rollups import worker as rollups
from monitor.depot.series.delete import delete_series
from monitor.models import Binding, MaintenanceWindow, OutcomeProgress, Run, Series, Site, Suite
from monitor.models.run import JUDGED, State
from tests.monitor.conftest import NOON
from tests.monitor.web.pages import builders

EXAMPLES, NIGHTLY_EXAMPLES = 4, 300
FIRST = NOON - timedelta(hours=15)  # on the last evening of a month
HOURS = 72
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NAMES, SITES = ("one", "two", "three"), ("site1", "site2", "site3")
FULL, KEY, STRANGE = "No space left on device", "u@there: Permission denied (publickey).", "xyzzy"


@dataclass(frozen=True)
class Change:
    """One change of the depot, and its name in a printed example."""

    name: str
    arguments: Any

    def apply(self) -> None:
        CHANGES[self.name](*self.arguments)


def end_runs(name: str, slots: list[datetime], outcome: str) -> None:
    """Deliver the reports of runs of a series, whenever their slots were; those of earlier ones are late."""
    for series in Series.objects.filter(name=name):
        resource = Binding.objects.filter(series=series).values_list("resource__name", flat=True)[0]
        for slot in slots:
            sent = builders.report(series, slot)
            builders.delivered(builders.failed(sent, "transfer_ring", resource, outcome) if outcome else sent)
    rollups.gather()


def miss(name: str, slot: datetime) -> None:
    """Create a run that was missed; a later report of it replaces that."""
    series = Series.objects.filter(name=name).first()
    if series and not Run.objects.filter(series=series, slot=slot).exists():
        builders.not_run(series, slot, State.MISSED, "")
    rollups.gather()


def count(now: datetime) -> None:
    worker.count(now, within_seconds=float("inf"))


def begin_to_count(now: datetime) -> None:
    """Count until the first step is done, as a process that is killed after it."""
    worker.count(now, within_seconds=0)


def recount() -> None:
    worker.recount_all()


def classify(now: datetime) -> None:
    classify_runs(now)


def plan_maintenance(start: datetime, length: timedelta, sites: set[str]) -> None:
    window = MaintenanceWindow.objects.create(
        name=f"w{MaintenanceWindow.objects.count()}", starts_at=start, ends_at=start + length
    )
    window.sites.set(Site.objects.filter(name__in=sites))


def cancel_maintenance() -> None:
    MaintenanceWindow.objects.all().delete()


def bind_elsewhere(name: str, site: str) -> None:
    binding = Binding.objects.filter(series__name=name).order_by("position").first()
    others = {f"{each}-login" for each in SITES}
    others -= set(Binding.objects.filter(series__name=name).values_list("resource__name", flat=True))
    if binding and f"{site}-login" in others:
        binding.resource = builders.site(site)
        binding.resource.refresh_from_db()
        binding.save()


def move(name: str, suite: str) -> None:
    Series.objects.filter(name=name).update(suite=Suite.objects.get(name=suite))


def delete(name: str) -> None:
    delete_series(Series.objects.filter(name=name))


CHANGES: dict[str, Callable[..., None]] = {
    change.__name__: change
    for change in (
        end_runs, miss, count, begin_to_count, recount, classify, plan_maintenance, cancel_maintenance,
        bind_elsewhere, move, delete,
    )
}  # fmt: skip
names, sites = st.sampled_from(NAMES), st.sampled_from(SITES)
# Slots lie 20 minutes apart, so that some have several changes; hours of counting lie among them.
slots = st.integers(0, HOURS * 3 - 1).map(lambda number: FIRST + number * 20 * MINUTE)
times = st.integers(0, HOURS * 60).map(lambda number: FIRST + number * MINUTE)
outcomes = st.sampled_from(["", "", FULL, KEY, STRANGE])
endings = st.builds(
    Change,
    st.just("end_runs"),
    st.tuples(names, st.lists(slots, min_size=1, max_size=4, unique=True), outcomes),
)
changes = st.one_of(
    endings,
    endings,
    st.builds(Change, st.sampled_from(["count", "begin_to_count", "classify"]), st.tuples(times)),
    st.builds(Change, st.just("miss"), st.tuples(names, slots)),
    st.builds(
        Change,
        st.just("plan_maintenance"),
        st.tuples(times, st.sampled_from([30 * MINUTE, 5 * HOUR]), st.sets(sites, max_size=2)),
    ),
    st.builds(Change, st.just("bind_elsewhere"), st.tuples(names, sites)),
    st.builds(Change, st.just("move"), st.tuples(names, st.sampled_from(["main", "closed"]))),
    st.builds(Change, st.just("delete"), st.tuples(names)),
    st.builds(Change, st.sampled_from(["recount", "cancel_maintenance"]), st.just(())),
)
ranges = st.tuples(times, times).map(sorted)
any_history = given(
    before=st.lists(endings, min_size=1, max_size=3),
    later=st.lists(changes, max_size=8),
    now=times,
    span=ranges,
    site=st.sampled_from(["", "", "site1"]),
    sees_all=st.booleans(),
)


@pytest.fixture
def grid(db: None) -> None:
    resources = builders.sites(3)
    closed = Suite.objects.create(name="closed")
    closed.viewers.add(Group.objects.create(name="few"))
    for number, name in enumerate(NAMES):
        builders.circle(name, [resources[number % 3], resources[(number + 1) % 3]])
    Series.objects.filter(name="three").update(suite=closed)
    User.objects.create_user("viewer")
    User.objects.create_user("administrator", is_superuser=True)


@any_history
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stored_outcomes_are_those_of_the_runs(grid: None, **example: Any) -> None:
    check(**example)


@pytest.mark.nightly
@any_history
@settings(
    max_examples=NIGHTLY_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_stored_outcomes_are_those_of_the_runs_in_many_histories(grid: None, **example: Any) -> None:
    check(**example)


def check(
    before: list[Change],
    later: list[Change],
    now: datetime,
    span: list[datetime],
    site: str,
    *,
    sees_all: bool,
) -> None:
    with transaction.atomic():
        for change in [*before, *later]:
            change.apply()
        last = max(now, *OutcomeProgress.objects.values_list("until", flat=True), FIRST)
        count(last)
        count(last)
        user = User.objects.get(username="administrator" if sees_all else "viewer")
        for start, end in (span, [FIRST, FIRST + HOURS * HOUR], [floor(span[0], DAY), floor(span[1], DAY)]):
            compare(user, site, start, end)
        transaction.set_rollback(True)


def compare(user: User, site: str, start: datetime, end: datetime) -> None:
    read = RunOutcomes(user, start, end, site=site)
    series = Series.objects.visible_to(user)
    if site:
        series = series.filter(bindings__resource__site__name=site)
    keys = sorted({*series.values_list("pk", flat=True)})
    runs = Run.objects.filter(series__in=keys, slot__gte=start, slot__lt=end).order_by("slot", "series")
    passed = list(runs.filter(state=State.PASSED).values_list("slot", "series"))
    assert read.series.tolist() == keys
    assert dict(zip(keys, read.passed_by_series.tolist(), strict=True)) == {
        key: sum(series == key for _, series in passed) for key in keys
    }
    by_hour: Counter[int] = Counter()
    for hour, count_of_hour in zip(read.passed_by_hour.hours, read.passed_by_hour.runs, strict=True):
        by_hour[int(hour)] += int(count_of_hour)
    assert +by_hour == Counter(micros(floor(slot, HOUR)) for slot, _ in passed)
    failed = runs.filter(state__in=set(JUDGED) - {State.PASSED})
    columns = ("slot", "series", "signature", "failed_resource", "stage", "in_maintenance")
    expected = failed.annotate(in_maintenance=failed_in_maintenance(start, end)).values_list(*columns)
    assert [
        (slot, series, signature or None, read.names[place], read.names[stage], is_during)
        for slot, series, signature, place, stage, is_during in read.failed.tolist()
    ] == [(micros(slot), *row) for slot, *row in expected]
    unnamed = [name for name in read.failed.dtype.names or () if name not in {"place", "stage"}]
    assert np.array_equal(read.failed[unnamed], read.failed_unnamed[unnamed])
    sums = {key: repairs_of(key, start, end) for key in keys}
    assert [tuple(each) for each in read.repairs_of(read.series).tolist()] == list(sums.values())
    assert read.repairs.tolist() == [tuple(map(sum, zip((0, 0, 0, 0), *sums.values(), strict=True)))]


def repairs_of(series: int, start: datetime, end: datetime) -> tuple[int, int, int, int]:
    """Return the outages, repairs, operating and repairing time of the days that a range touches."""
    progress = OutcomeProgress.objects.get()
    first, last = floor(start, DAY), min(ceiling(end, DAY), progress.until)
    runs = Run.objects.filter(series=series, state__in=JUDGED).order_by("slot")
    outages = repairs = operating = repairing = 0
    began: datetime | None = None
    for (slot, state), (next_slot, next_state) in pairwise(runs.values_list("slot", "state")):
        has_passed, is_counted = state == State.PASSED, first <= next_slot < last
        began = None if has_passed else began or slot
        if is_counted and has_passed:
            operating += (next_slot - slot) // timedelta.resolution
            outages += next_state != State.PASSED
        elif is_counted and began and next_state == State.PASSED:
            repairs += 1
            repairing += (next_slot - began) // timedelta.resolution
    return outages, repairs, operating, repairing
