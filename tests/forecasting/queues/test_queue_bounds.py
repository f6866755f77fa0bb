from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from forecasting import state
from forecasting.base import InvalidNumber
from forecasting.queues.bounds import QueueBounds
from forecasting.queues.queue_state import QUEUE_SIGNALS, SIGNALS, QueuedJob, QueueState
from forecasting.queues.regressed import QueueLevel
from forecasting.queues.replay import score_queues
from forecasting.reading import swf
from forecasting.reading.swf import LoggedJob
from tests import realdata

LEAST = 59
MINUTE = 60.0


def machine_log(count: int, *, seed: int = 1, processors: int = 32) -> list[LoggedJob]:
    """Return the log of a first-come first-served machine with two queues, overloaded by day."""
    draw, logged = random.Random(seed), list[LoggedJob]()
    free_at, now = [0.0] * processors, 0.0
    for number in range(count):
        busy = (now // 43_200) % 2
        now += round(draw.expovariate(1.0 / (300.0 if busy else 900.0)))
        wanted, runs = draw.choice([1, 1, 2, 4, 8, 16]), round(draw.lognormvariate(7.0, 1.0))
        free_at.sort()
        starts = max(now, free_at[wanted - 1], logged[-1].left_queue_seconds if logged else 0.0)
        free_at[:wanted] = [starts + runs] * wanted
        requested = runs * draw.choice([1, 2, 5])
        job = QueuedJob(number, now, draw.choice(["a", "a", "b"]), str(draw.randrange(9)), wanted, requested)
        logged.append(LoggedJob(job, starts - now, runs, withdrawn=False))
    return logged


def followed(jobs: int, wait: float = 5 * MINUTE) -> QueueBounds:
    """Return the bounds of a machine with one job each minute so far, all with equal waits."""
    machine = QueueBounds()
    for number in range(jobs):
        machine.submit(QueuedJob(number, number * MINUTE, "a", "me", 1.0, 3600.0))
        behind = number - round(wait / MINUTE)
        if behind >= 0:
            machine.start(behind, number * MINUTE)
    return machine


def test_a_queue_has_no_bound_before_its_minimum_history() -> None:
    machine = followed(LEAST + 5)  # 59 have started
    assert machine.bound(QueuedJob(999, 4000.0, "b")) is None
    assert machine.bound(QueuedJob(999, 4000.0, "a")) is not None
    assert followed(LEAST + 4).bound(QueuedJob(999, 4000.0, "a")) is None


def test_the_first_bound_is_that_of_the_waits_of_the_queue() -> None:
    assert followed(LEAST + 5).bound(QueuedJob(999, 64 * MINUTE, "a")) == pytest.approx(5 * MINUTE)


def test_hits_before_the_first_miss_lower_a_level_little_and_a_miss_raises_it_by_more() -> None:
    level, share = QueueLevel(0.0), 0.99
    for _ in range(300):
        level.learn(1.0 - share)
    after_hits = level.raised
    level.learn(-share)
    assert -1.6 < after_hits < 0.0
    assert level.raised - after_hits > 0.08


def test_the_bound_asked_for_equals_that_at_submission_and_changes_nothing() -> None:
    used, unused = followed(300), followed(300)
    job = QueuedJob(300, 300 * MINUTE, "a", "somebody else", 8.0, 7200.0)
    bound = used.bound(job)
    assert used.bound(replace(job, queue="never seen", user="nor he")) is None
    assert state.dump(used) == state.dump(unused)
    assert used.submit(job) == unused.submit(job) == bound


def test_a_stall_raises_the_bound_while_it_lasts() -> None:
    machine = followed(300)
    bounds = [
        machine.submit(QueuedJob(number, number * MINUTE, "a", "me", 1.0, 3600.0))
        for number in range(300, 540)
    ]
    before, *_, after = bounds
    assert before == pytest.approx(5 * MINUTE, rel=0.5)
    assert after is not None
    assert after > 60 * MINUTE


def test_a_loaded_state_gives_the_same_bounds() -> None:
    bounds = followed(400)
    loaded = state.load(QueueBounds, state.dump(bounds))
    for number in range(400, 440):
        job = QueuedJob(number, number * MINUTE, "a", str(number % 3), 2.0, 60.0)
        assert bounds.submit(job) == loaded.submit(job)
        for machine in (bounds, loaded):
            machine.start(number - 5, number * MINUTE)
            machine.end(number - 5, number * MINUTE)
    assert state.dump(bounds) == state.dump(loaded)


def test_events_in_the_wrong_order_are_refused() -> None:
    machine = QueueBounds()
    machine.submit(QueuedJob(1, 0.0))
    with pytest.raises(InvalidNumber, match="cannot submit job 1"):
        machine.submit(QueuedJob(1, 5.0))
    with pytest.raises(InvalidNumber, match="cannot end job 1"):
        machine.end(1, 5.0)
    with pytest.raises(InvalidNumber, match="cannot remove job 2"):
        machine.start(2, 5.0)
    machine.start(1, 5.0)
    with pytest.raises(InvalidNumber, match="cannot remove job 1"):
        machine.withdraw(1)


@pytest.mark.parametrize("pair", [(0.0, 0.95), (0.95, 1.0)])
def test_an_invalid_probability_is_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(InvalidNumber):
        QueueBounds(*pair)


def test_when_all_have_left_nothing_is_in_the_backlog() -> None:
    backlog, empty = QueueState(), QueueState()
    jobs = [QueuedJob(number, 0.0, "a", str(number % 2), 3.0, 60.0) for number in range(6)]
    for job in jobs:
        backlog.submit(job)
    for job in jobs[:4]:
        backlog.start(job.number, 10.0)
    backlog.withdraw(4)
    backlog.withdraw(5)
    for job in jobs[:4]:
        backlog.end(job.number, 70.0)
    assert backlog.active_jobs == empty.active_jobs
    newcomer = QueuedJob(9, 99.0, "b", "new", 1.0, 60.0)
    different = [
        index
        for index, (signal, other) in enumerate(
            zip(backlog.signals(newcomer, 99.0), empty.signals(newcomer, 99.0), strict=True)
        )
        if signal != other
    ]
    assert len(different) < SIGNALS / 4  # its capacity, and how long jobs usually wait
    assert len(backlog.signals(newcomer, 99.0)) == SIGNALS + QUEUE_SIGNALS


def overtaken(overtakes: int, queue: str) -> QueueState:
    """Return a state in which a job of *queue* waits since 0, and later jobs of queue a waited a minute."""
    backlog = QueueState()
    backlog.submit(QueuedJob(0, 0.0, queue, "held", 64.0, 1e5))
    for number in range(1, overtakes + 1):
        backlog.submit(QueuedJob(number, number * MINUTE, "a", "me", 1.0, 60.0))
        backlog.start(number, (number + 1) * MINUTE)
        backlog.end(number, (number + 2) * MINUTE)
    return backlog


def test_a_job_that_59_later_jobs_of_its_queue_overtook_is_held_and_no_longer_counts_as_waiting() -> None:
    newcomer = QueuedJob(999, 100 * MINUTE, "a", "me", 64.0, 1e5)
    waiting, held = overtaken(58, "a"), overtaken(59, "a")
    assert waiting.limit_seconds("a", 100 * MINUTE) == 100 * MINUTE
    assert held.limit_seconds("a", 100 * MINUTE) == 2 * MINUTE
    held.withdraw(0)
    assert held.signals(newcomer, 100 * MINUTE) == overtaken(59, "a").signals(newcomer, 100 * MINUTE)


def test_a_job_whose_queue_does_not_move_is_not_held_and_limits_no_other_queue() -> None:
    backlog = overtaken(200, "b")
    assert backlog.limit_seconds("b", 300 * MINUTE) == 300 * MINUTE
    assert backlog.limit_seconds("a", 300 * MINUTE) == 2 * MINUTE


def test_a_held_job_that_starts_after_all_moves_no_limit() -> None:
    backlog = overtaken(70, "a")
    backlog.start(0, 100 * MINUTE)
    assert backlog.limit_seconds("a", 100 * MINUTE) == 2 * MINUTE
    backlog.end(0, 200 * MINUTE)
    assert not backlog.active_jobs


@pytest.mark.parametrize("queue", ["a", "b", "c"])
def test_a_job_that_never_starts_costs_no_queue_its_bounds(queue: str) -> None:
    jobs = machine_log(1500)
    stuck = LoggedJob(QueuedJob(9999, 90_000.0, queue, "x", 32.0, 1e5), 1e9, 0.0, withdrawn=True)
    for with_stuck, without in zip(score_queues([*jobs, stuck]), score_queues(jobs), strict=True):
        assert (with_stuck.bound.coverage or 0.0) > (without.bound.coverage or 0.0) - 0.01
        assert (with_stuck.bound.pinball_seconds or 1e9) < 1.3 * (without.bound.pinball_seconds or 0.0)


def test_the_bounds_of_a_users_burst_rise_as_soon_as_the_first_of_its_jobs_has_waited_too_long() -> None:
    machine, bounds, first = followed(400), list[float](), 400
    for number in range(first, first + 300):
        now = number * MINUTE
        job = QueuedJob(number, now, "a", "burst", 1.0, 3600.0)
        bounds.append(machine.submit(job) or 0.0)
        if number % 3 == 0:  # a job starts every three minutes, so each waits two minutes longer
            machine.start(first + (number - first) // 3, now)
    assert bounds[0] == pytest.approx(5 * MINUTE, rel=0.5)
    waits = [2 * MINUTE * place for place in range(300)]
    missed = [wait > bound for wait, bound in zip(waits, bounds, strict=True)]
    assert sum(missed[:60]) > 40
    assert bounds[-1] > 10 * bounds[0]


def test_behind_a_hundred_waiting_jobs_of_its_user_a_job_is_bounded_by_the_pace_of_their_starts() -> None:
    machine, first = followed(400), 400
    for number in range(first, first + 400):
        now, wait = number * MINUTE, 2 * MINUTE * (number - first)
        bound = machine.submit(QueuedJob(number, now, "a", "burst", 1.0, 3600.0))
        if number % 3 == 0:  # each job waits two minutes longer than the one before
            machine.start(first + (number - first) // 3, now)
        if number - first > 160:
            assert bound is not None
            assert wait <= bound <= 1.5 * wait


def test_an_earlier_pause_of_a_user_is_not_the_pace_of_a_new_crowd() -> None:
    machine = followed(400)
    for number in range(395, 400):  # the last that wait
        machine.start(number, 400 * MINUTE)
    for number in range(400, 510):
        machine.submit(QueuedJob(number, 30 * 86_400.0, "a", "me", 1.0, 3600.0))
    bound = machine.bound(QueuedJob(999, 30 * 86_400.0, "a", "me", 1.0, 3600.0))
    assert bound is not None
    assert bound < 86_400.0


def test_a_job_of_a_new_class_or_user_has_a_bound_from_its_queue() -> None:
    machine = followed(400)
    bound = machine.bound(QueuedJob(999, 400 * MINUTE, "a", "new-user", 64.0, 90_000.0))
    assert bound is not None
    assert 5 * MINUTE <= bound <= 20 * MINUTE


@pytest.mark.nightly
def test_on_a_machine_that_fills_up_coverage_is_nearly_kept_with_a_loss_far_below_a_plain_quantile() -> None:
    jobs = score_queues(machine_log(6000))
    assert [(score.queue, score.jobs > score.bounded > 1900) for score in jobs] == [("a", True), ("b", True)]
    for score in jobs:
        assert score.bound.coverage is not None
        assert score.bound.pinball_seconds is not None
        assert score.plain.pinball_seconds is not None
        assert 0.94 <= score.bound.coverage < 0.98  # a plain quantile: 0.90 and 0.92
        assert score.bound.pinball_seconds < 0.8 * score.plain.pinball_seconds


@pytest.mark.skipif(
    bool(realdata.missing(*realdata.QUEUES)), reason=realdata.missing(*realdata.QUEUES) or "-"
)
@pytest.mark.nightly
def test_in_the_first_weeks_of_a_real_machine_the_loss_is_far_below_a_plain_quantiles(tmp_path: Path) -> None:
    beginning = tmp_path / "first.swf"
    with gzip.open(realdata.QUEUES[0]) as stream:
        beginning.write_bytes(b"".join(islice(stream, 8000)))
    largest = score_queues(swf.read(str(beginning)).jobs)[0]
    assert largest.bounded > 7000
    assert (largest.bound.coverage or 0.0) > 0.945  # of the whole log 0.965, at half the loss
    assert (largest.bound.pinball_seconds or 1e9) < 0.6 * (largest.plain.pinball_seconds or 0.0)


def bounds_of(jobs: Sequence[LoggedJob], until_seconds: float) -> dict[int, float | None]:
    """Return the bounds of the jobs submitted until then, with all events of the log used."""
    machine, bounds = QueueBounds(), dict[int, float | None]()
    events = sorted(
        [(job.job.submitted_seconds, 1, job.job.number) for job in jobs]
        + [(job.left_queue_seconds, 0, job.job.number) for job in jobs if job.wait_seconds > 0]
        + [(job.left_queue_seconds, 2, job.job.number) for job in jobs if job.wait_seconds == 0]
    )
    for at_seconds, what, number in events:
        if what == 1:
            bound = machine.submit(jobs[number].job)
            if at_seconds <= until_seconds:
                bounds[number] = bound
        else:
            machine.start(number, at_seconds)
    return bounds


def test_shuffling_the_future_never_moves_a_past_bound() -> None:
    jobs = machine_log(900)
    now = jobs[600].job.submitted_seconds
    later = [job for job in jobs if job.left_queue_seconds > now]
    waits = [job.wait_seconds for job in later]
    random.Random(2).shuffle(waits)
    other = list(jobs)
    for job, wait in zip(later, waits, strict=True):
        least = max(0.0, now - job.job.submitted_seconds) + 1.0  # its age so far
        other[job.job.number] = replace(job, wait_seconds=max(wait, least))
    before, after = bounds_of(jobs, now), bounds_of(other, now)
    assert before == after
    assert sum(bound is not None for bound in before.values()) > 300
    assert bounds_of(jobs, 1e12) != bounds_of(other, 1e12)


@pytest.mark.parametrize("wait", [0.0, 1e15])
def test_waits_that_are_all_alike_are_their_own_bound(wait: float) -> None:
    jobs = [LoggedJob(QueuedJob(number, 2.0 * number), wait, 1.0, withdrawn=False) for number in range(300)]
    if wait:  # each comes when the one before has started
        jobs = [replace(job, job=QueuedJob(job.job.number, 2.0 * wait * job.job.number)) for job in jobs]
    [score] = score_queues(jobs)
    assert score.bounded == 300 - LEAST
    assert (score.bound.coverage or 0.0) > 0.94
    assert score.bound.median_seconds == pytest.approx(wait, rel=1.0, abs=1.0)


def test_withdrawn_jobs_are_neither_scored_nor_learned() -> None:
    jobs = machine_log(400)
    cancelled = [
        LoggedJob(QueuedJob(1000 + number, 777.0 * number, "a", "x", 1.0, 60.0), 1e5, 0.0, withdrawn=True)
        for number in range(40)
    ]
    with_them = {score.queue: score.jobs for score in score_queues([*jobs, *cancelled])}
    assert with_them == {score.queue: score.jobs for score in score_queues(jobs)}


def test_the_order_of_the_lines_of_a_log_changes_nothing() -> None:
    jobs = machine_log(500)
    assert score_queues(jobs) == score_queues(jobs[::-1])
