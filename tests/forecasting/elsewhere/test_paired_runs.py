from __future__ import annotations

from forecasting.elsewhere.runs import IoRun, IoTime, SystemRuns, fresh_until
from tests.forecasting.elsewhere.systems import DAY, runs


def run(started: float, seconds: float = 1.0, moved: float | None = None) -> IoRun:
    return IoRun(started, {"read": IoTime(seconds, moved)})


def test_a_run_is_paired_with_the_replay_nearest_in_time() -> None:
    system = SystemRuns("disk", [run(50.0), run(900.0)], [run(0.0, 2.0), run(60.0, 3.0), run(1000.0, 4.0)])
    assert [pair.replay.seconds for pair in system.pairs] == [3.0, 4.0]


def test_runs_far_from_any_replay_are_left_out() -> None:
    hourly = [run(3600.0 * hour) for hour in range(3)]
    system = SystemRuns("disk", [run(1.5 * DAY), run(10.0)], hourly)
    assert [pair.application.started_at_seconds for pair in system.pairs] == [10.0]
    weekly = [run(7 * DAY * week) for week in range(3)]
    assert len(SystemRuns("disk", [run(3 * DAY), run(30 * DAY)], weekly).pairs) == 1


def test_runs_without_a_time_are_left_out() -> None:
    system = SystemRuns("disk", [run(0.0, 0.0), run(10.0)], [run(9.0, 0.0), run(20.0)])
    assert [(pair.application.seconds, pair.replay.seconds) for pair in system.pairs] == [(1.0, 1.0)]
    assert SystemRuns("disk", [run(0.0)], []).pairs == []


def test_a_replay_counts_as_if_it_had_moved_the_bytes_of_its_run() -> None:
    system = SystemRuns("disk", [run(0.0, 8.0, moved=400.0)], [run(1.0, 1.0, moved=100.0)])
    assert system.pairs[0].replay.seconds == 4.0


def test_replays_stay_fresh_for_ten_gaps_and_at_least_a_day() -> None:
    assert fresh_until([run(10.0)]) == 10.0 + DAY
    assert fresh_until(runs((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))) == 12 * DAY
