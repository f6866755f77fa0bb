"""Rank paths where an application has not run, by replays of its calls."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone

from monitor.analysis.forecasts import refresh
from monitor.analysis.forecasts.defaults import ELSEWHERE
from monitor.analysis.forecasts.rank import Ranked, Unranked, rank
from monitor.models import DayScore, Forecast, ForecastDelivery, Segment, Series, Suite
from tests.monitor.analysis.forecasts import io_builders
from tests.monitor.analysis.forecasts.io_builders import IoGrid


@pytest.fixture
def grid(db: None) -> IoGrid:
    return io_builders.io_grid(timezone.now() - timedelta(days=7))


@pytest.fixture
def reader(db: None) -> User:
    return User.objects.create_user("reader")


def asked(
    user: User, *series: Series, now: datetime, at: datetime | None = None
) -> tuple[list[Ranked], list[Unranked]]:
    names = [each.name for each in series]
    return rank(user, "series", names, application="", probability=0.9, at=at or now, now=now)


def test_a_path_without_a_run_is_ranked_by_replays(grid: IoGrid, reader: User) -> None:
    ranked, unranked = asked(reader, grid.reference, grid.target, grid.far, now=grid.now)
    assert [(each.candidate.name, each.candidate.method) for each in ranked] == [
        ("madbench-flash", ELSEWHERE),
        ("madbench-disk", "auto"),
    ]
    first = ranked[0].candidate
    assert first.n == 0
    assert first.median == pytest.approx(2.0 + 5.0 + 3.0 + 9.0)
    assert first.seconds is not None
    assert first.seconds > 19.0
    assert first.success_probability is not None
    basis = first.basis
    assert basis is not None
    assert (basis.reference, basis.reference_runs) == ("madbench-disk", 3)
    assert (basis.replay, basis.reference_replay) == ("replay-flash", "replay-disk")
    assert [basis.io_seconds, basis.compute_seconds, basis.queue_seconds] == pytest.approx([7.0, 3.0, 9.0])
    read, write = basis.classes
    assert (read.name, write.name) == ("read", "write")
    assert [read.ratio, write.seconds, write.reference_seconds] == pytest.approx([0.1, 5.0, 10.0])
    assert [(each.number, each.code) for each in unranked] == [(2, "no_replay")]
    assert unranked[0].reason == "no replay of madbench has passed at site3-login"


def test_the_same_question_gets_the_same_forecast(grid: IoGrid, reader: User) -> None:
    numbers = {asked(reader, grid.target, now=grid.now)[0][0].candidate.forecast for _ in range(2)}
    assert len(numbers) == 1
    assert Forecast.objects.filter(method=ELSEWHERE).count() == 1
    assert Segment.objects.filter(series=grid.target).count() == 1


def test_the_next_run_scores_the_forecast(grid: IoGrid, reader: User) -> None:
    (first,), _ = asked(reader, grid.target, now=grid.now)
    run = io_builders.io_run(grid.target, grid.now + timedelta(minutes=1), read=2.2, write=5.5)
    refresh.refresh_all(grid.now + timedelta(hours=1))
    forecast = Forecast.objects.get(method=ELSEWHERE)
    assert forecast.pk == first.candidate.forecast
    assert forecast.truth == pytest.approx(2.2 + 5.5 + 3.0 + 1.0)
    assert forecast.truth_time == run.slot
    assert Segment.objects.filter(series=grid.target).count() == 1
    assert DayScore.objects.filter(method=ELSEWHERE, n=1).exists()


def test_own_history_takes_over_once_it_is_better(grid: IoGrid, reader: User) -> None:
    now = grid.now
    methods = []
    for _ in range(6):
        (first,), _ = asked(reader, grid.target, now=now)
        methods.append(first.candidate.method)
        io_builders.io_run(grid.target, now + timedelta(minutes=1), read=3.0, write=7.5, queue_seconds=9.0)
        now += timedelta(hours=1)
        io_builders.io_run(
            grid.replay_there, now - timedelta(minutes=5), read=2.0, write=5.0, queue_seconds=9.0
        )
        refresh.refresh_all(now)
    assert methods[0] == ELSEWHERE
    assert methods[-1] == "auto"
    assert methods == sorted(methods, reverse=True)
    scored = Forecast.objects.filter(method=ELSEWHERE, truth__isnull=False)
    assert scored.count() == methods.count(ELSEWHERE)


def test_an_accurate_forecast_from_elsewhere_stays(grid: IoGrid, reader: User) -> None:
    now = grid.now
    for number in range(5):
        (first,), _ = asked(reader, grid.target, now=now)
        assert first.candidate.method == ELSEWHERE
        factor = 1.0 + 0.3 * (number % 2)  # replays follow what the last value cannot
        io_builders.io_run(
            grid.target, now + timedelta(minutes=1), read=2.0 * factor, write=5.0, queue_seconds=9.0
        )
        now += timedelta(hours=1)
        refresh.refresh_all(now)


def test_old_replays_are_stale(grid: IoGrid, reader: User) -> None:
    later = grid.now + timedelta(days=5)
    _, (unranked,) = asked(reader, grid.target, now=later)
    assert unranked.code == "stale"
    assert unranked.reason == "the newest replay on site2-login is 5.0 days old"


def test_an_unfaithful_replay_is_refused(grid: IoGrid, reader: User) -> None:
    for minutes in range(10):
        slot = grid.now - timedelta(minutes=50 - minutes)
        io_builders.io_run(grid.reference, slot, read=60.0, write=30.0)
    _, (unranked,) = asked(reader, grid.target, now=grid.now + timedelta(minutes=1))
    assert unranked.code == "unfaithful"
    assert unranked.reason.startswith("on site1-login the application takes 3.00 times as long")


def test_a_replay_of_other_calls_does_not_count(grid: IoGrid, reader: User) -> None:
    Series.objects.filter(pk=grid.target.pk).update(parameters={"no_pix": 65, "no_bin": 2})
    _, (unranked,) = asked(reader, grid.target, now=grid.now)
    assert (unranked.code, unranked.reason) == ("too_few", "no run has passed yet")


def test_a_replay_of_an_unknown_application_does_not_count(grid: IoGrid, reader: User) -> None:
    for number, text in enumerate(
        ("{", "[]", '{"application": null}', '{"application": {"probe": "madbench"}}', "")
    ):
        odd = io_builders.replay(f"replay-odd-{number}", grid.tape, text)
        io_builders.io_run(odd, grid.now - timedelta(minutes=30), read=1.0, write=1.0)
    refresh.refresh_all(grid.now)
    _, (unranked,) = asked(reader, grid.far, now=grid.now)
    assert unranked.code == "no_replay"


def test_series_that_not_all_viewers_see_do_not_count(grid: IoGrid, reader: User) -> None:
    hidden = Suite.objects.create(name="hidden")
    hidden.viewers.add(Group.objects.create(name="staff"))
    Series.objects.filter(pk=grid.reference.pk).update(suite=hidden)
    root = User.objects.create_superuser("root")
    _, (unranked,) = asked(root, grid.target, now=grid.now)
    assert (unranked.code, "have passed nowhere" in unranked.reason) == ("no_replay", True)


def test_a_future_start_has_a_forecast_from_elsewhere(grid: IoGrid, reader: User) -> None:
    (first,), _ = asked(reader, grid.target, now=grid.now, at=grid.now + timedelta(hours=2))
    assert first.candidate.method == ELSEWHERE
    assert first.candidate.seconds is not None


def test_replaced_forecasts_are_deleted_after_their_deliveries(grid: IoGrid, reader: User) -> None:
    asked(reader, grid.target, now=grid.now)
    first = Forecast.objects.get(method=ELSEWHERE)
    later = grid.now + timedelta(days=2)
    io_builders.io_run(grid.replay_there, later, read=2.0, write=5.0)
    refresh.refresh_all(later + timedelta(hours=1))
    asked(reader, grid.target, now=later + timedelta(hours=1))
    assert Forecast.objects.filter(pk=first.pk).exists()  # a job's outcome may come
    ForecastDelivery.objects.get(forecast=first).delete()
    io_builders.io_run(grid.replay_there, later + timedelta(hours=2), read=2.1, write=5.0)
    refresh.refresh_all(later + timedelta(hours=3))
    asked(reader, grid.target, now=later + timedelta(hours=3))
    assert not Forecast.objects.filter(pk=first.pk).exists()
