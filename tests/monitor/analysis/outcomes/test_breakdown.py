"""Failures by series, site, path and stage: what counts where, worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.outcomes import breakdown
from monitor.analysis.outcomes.breakdown import Breakdown, BreakdownKind, break_down, paths
from monitor.analysis.outcomes.counts import RANGES, SuccessRates, outcomes_in
from monitor.analysis.outcomes.keyed_runs import KeyedRuns, by_names
from monitor.analysis.outcomes.repair_times import RepairTimes
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import MaintenanceWindow, Run, Series, Site
from tests.monitor.conftest import NOON
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)
FULL, KEY = "No space left on device", "u@there: Permission denied (publickey)."
EXCUSED = 2  # a cause that does not count against a site


# The rows (name, passed, failed, excused, most frequent cause) of passed runs by name and failed runs with
# their causes, in order.
@pytest.mark.parametrize(
    ("passed", "failed", "expected"),
    [
        ({}, [], []),
        ({"a": 3}, [], [("a", 3, 0, 0, 0)]),
        ({"a": 3}, [("a", 1)], [("a", 3, 1, 0, 1)]),
        ({}, [("a", 2), ("a", 1), ("a", 2)], [("a", 0, 3, 2, 2)]),
        ({}, [("a", 0), ("a", 1), ("a", 0)], [("a", 0, 3, 0, 0)]),  # most are not classified yet
        (  # the lower adjusted rate first; without one last
            {"a": 3, "b": 3},
            [*3 * [("a", 2)], ("b", 1), *9 * [("c", 2)]],
            [("b", 3, 1, 0, 1), ("a", 3, 3, 3, 2), ("c", 0, 9, 9, 2)],
        ),
        (  # of equal rates, more failures first; then by name
            {},
            [("c", 1), ("b", 1), ("b", 1), ("a", 1)],
            [("b", 0, 2, 0, 1), ("a", 0, 1, 0, 1), ("c", 0, 1, 0, 1)],
        ),
        ({"b": 1, "a": 1, "c": 0}, [], [("a", 1, 0, 0, 0), ("b", 1, 0, 0, 0)]),  # one without runs is none
    ],
)
def test_the_worst_come_first(
    passed: Mapping[str, int],
    failed: Sequence[tuple[str, int]],
    expected: Sequence[tuple[str, int, int, int, int]],
) -> None:
    names = [*dict.fromkeys([*passed, *(name for name, _ in failed)])]
    signatures = np.array([signature for _, signature in failed], np.int64)
    keyed = KeyedRuns(
        np.array([passed.get(name, 0) for name in names], np.int64),
        np.array([names.index(name) for name, _ in failed], np.int64),
        signatures,
        signatures == EXCUSED,
    )
    shown = keyed.worst(by_names(names), most=9)
    causes = keyed.causes([key for key, _ in shown])
    rows = []
    for key, name in shown:
        rates = keyed.rates(key)
        rows.append((name, rates.passed, rates.failed, rates.excused, causes.get(key, (0, 0))[0]))
    assert rows == list(expected)


def test_no_more_rows_than_the_most_are_chosen() -> None:
    none = np.zeros(0, np.int64)
    keyed = KeyedRuns(np.ones(5, np.int64), none, none, none.astype(np.bool_))
    assert keyed.worst(by_names("edcba"), most=2) == [(4, "a"), (3, "b")]


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ({}, set()),
        ({"target": ["a"]}, set()),
        ({"sources": ["a", "b"], "compute": ["c"], "destination": ["d"]}, {"a → c", "b → c", "c → d"}),
        ({"sources": ["a"], "compute": ["a"], "destination": ["b"]}, {"a → b"}),  # not within a site
        ({"ring": ["a", "b"]}, {"a → b", "b → a"}),
        ({"ring": ["a", "b", "c"]}, {"a → b", "b → c", "c → a"}),
        ({"client": ["a"], "server": ["b"]}, {"a → b"}),
    ],
)
def test_paths(bound: Mapping[str, Sequence[str]], expected: set[str]) -> None:
    assert paths(bound) == expected


@pytest.fixture
def gather(db: None) -> Series:
    """Gather from site1 through site2 to site3: two runs passed; one failed at site1, two at site2."""
    resources = builders.sites(4)
    series = builders.gather("gather-main", resources[:3])
    for minutes in (1, 3):
        builders.delivered(builders.report(series, NOON - minutes * MINUTE))
    fail(series, NOON - 2 * MINUTE, "site1-login", "transfer_data", FULL)
    fail(series, NOON - 4 * MINUTE, "site2-login", "compute", KEY)
    fail(series, NOON - 5 * MINUTE, "site2-login", "compute", KEY)
    builders.circle("circle-ring", [resources[0], resources[3]])
    builders.delivered(builders.report(Series.objects.get(name="circle-ring"), NOON - MINUTE))
    classify_runs(NOON)
    return series


def fail(series: Series, slot: datetime, resource: str, stage: str, message: str) -> None:
    builders.delivered(builders.failed(builders.report(series, slot), stage, resource, message))


def by(kind: BreakdownKind) -> Breakdown:
    return break_down(outcomes_in(RANGES["24h"], NOON, User(is_superuser=True)), kind)


def rates(kind: BreakdownKind) -> dict[str, SuccessRates]:
    return {row.name: row.rates for row in by(kind).rows}


def test_series_have_rates_and_repair_times(gather: Series) -> None:
    first, second = by(BreakdownKind.SERIES).rows
    assert (first.name, first.rates) == ("gather-main", SuccessRates(2, 3, 2))
    assert first.cause is not None
    assert (first.cause.name, first.cause_runs) == ("ssh-authentication-refused", 2)
    assert first.times == RepairTimes(1, MINUTE, 2, 3 * MINUTE)
    assert (second.name, second.rates, second.times) == ("circle-ring", SuccessRates(1, 0, 0), RepairTimes())


def test_a_failure_counts_at_the_site_where_it_happened(gather: Series) -> None:
    assert rates(BreakdownKind.SITE) == {
        "site1": SuccessRates(3, 1, 0),
        "site2": SuccessRates(2, 2, 2),
        "site3": SuccessRates(2, 0, 0),
        "site4": SuccessRates(1, 0, 0),
    }


def test_a_failure_counts_on_the_paths_that_begin_or_end_there(gather: Series) -> None:
    assert rates(BreakdownKind.PATH) == {
        "site1 → site2": SuccessRates(2, 3, 2),
        "site2 → site3": SuccessRates(2, 2, 2),
        "site1 → site4": SuccessRates(1, 0, 0),
        "site4 → site1": SuccessRates(1, 0, 0),
    }


def test_a_failure_counts_in_its_stage(gather: Series) -> None:
    found = rates(BreakdownKind.STAGE)
    assert found["transfer_data"] == SuccessRates(2, 1, 0)
    assert found["compute"] == SuccessRates(2, 2, 2)
    assert found["init"] == SuccessRates(3, 0, 0)  # of both probes
    assert "" not in found


def test_failures_without_a_stage_and_of_unknown_probes_are_counted(gather: Series) -> None:
    Run.objects.filter(stage="compute").update(stage="")
    assert rates(BreakdownKind.STAGE)[""] == SuccessRates(3, 2, 2)
    Series.objects.update(probe="removed")
    assert rates(BreakdownKind.STAGE)["transfer_data"] == SuccessRates(0, 1, 0)
    assert len(rates(BreakdownKind.PATH)) == 4


def test_a_failure_during_maintenance_is_excused(gather: Series) -> None:
    window = MaintenanceWindow.objects.create(
        name="disks", starts_at=NOON - 2 * MINUTE, ends_at=NOON - MINUTE
    )
    window.sites.add(Site.objects.get(name="site3"))  # a site of the series
    assert rates(BreakdownKind.SERIES)["gather-main"] == SuccessRates(2, 3, 3)


def test_rows_beyond_the_most_are_counted(gather: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breakdown, "MOST_ROWS", 1)
    shown = by(BreakdownKind.SITE)
    assert ([row.name for row in shown.rows], shown.more) == (["site1"], 3)


@pytest.mark.parametrize("kind", BreakdownKind)
def test_the_number_of_queries_does_not_depend_on_the_rows(
    gather: Series, kind: BreakdownKind, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        more = builders.gather(f"more-{number}", builders.sites(3))
        fail(more, NOON - MINUTE, "site1-login", "compute", FULL)
    with django_assert_max_num_queries(17):
        by(kind)
