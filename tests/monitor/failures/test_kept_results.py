"""Results over very many runs are kept for some minutes, for each kind of reader."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from monitor.failures import kept_results
from monitor.failures.kept_results import KEPT_FOR, KeptResults, counted_over
from monitor.models import Run, Series, Suite
from tests.monitor.conftest import NOON

SECOND = timedelta(seconds=1)


def test_a_result_is_kept_for_some_minutes() -> None:
    results, numbers = KeptResults(), count()
    got = [results.get("key", NOON + age, lambda: next(numbers)) for age in (timedelta(), KEPT_FOR - SECOND)]
    assert [(each.result, each.at) for each in got] == [(0, NOON), (0, NOON)]
    assert results.get("key", NOON + KEPT_FOR, lambda: next(numbers)).result == 1


def test_results_of_other_keys_are_others_and_the_oldest_are_dropped() -> None:
    results, numbers = KeptResults(most=2), count()
    for key in "abc":
        results.get(key, NOON, lambda: next(numbers))
    assert results.get("c", NOON, lambda: next(numbers)).result == 2
    assert results.get("a", NOON, lambda: next(numbers)).result == 3


def test_results_over_few_runs_are_counted_each_time(db: None) -> None:
    numbers = count()
    for expected in range(2):
        user = User(is_superuser=True)
        counted = counted_over(Run.objects.all(), user, "key", NOON, lambda: next(numbers))
        assert (counted.result, counted.at) == (expected, NOON)


def test_readers_of_other_suites_get_other_results(circle: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "MANY_RUNS", 0)
    monkeypatch.setattr(kept_results, "results", KeptResults())
    closed, few = Suite.objects.create(name="closed"), Group.objects.create(name="few")
    closed.viewers.add(few)
    one, same, other = (User.objects.create_user(name) for name in ("one", "same", "other"))
    other.groups.add(few)
    numbers = count()

    def result(user: User | AnonymousUser) -> int:
        return counted_over(Run.objects.all(), user, "key", NOON, lambda: next(numbers)).result

    assert [result(user) for user in (one, same, other, User(is_superuser=True), one)] == [0, 0, 1, 2, 0]
