from __future__ import annotations

import numpy as np

from forecasting import state
from forecasting.learning.issued import IssuedAnswers, OutcomeSampling
from forecasting.predictor_values import MAX_ROWS


def number(answers: IssuedAnswers, time_seconds: float) -> tuple[float, int] | None:
    """Return the only number of the answer issued before *time_seconds*, and its overlap."""
    issued = answers.issued(time_seconds, 1)
    return issued and (float(issued.numbers[0]), issued.overlap)


def kept(*runs: tuple[float, float]) -> IssuedAnswers:
    """Return the answers kept for *runs*, pairs of start and end; the n-th answer is n."""
    answers = IssuedAnswers()
    for count, (start, end) in enumerate(runs):
        answers.keep(np.array([float(count)]) if count else None, start, end)
    return answers


def test_runs_one_after_another_get_the_present_answer() -> None:
    answers = kept((0, 10), (20, 30), (40, 50))
    assert answers.is_current(50)
    assert not answers.is_current(49)
    assert number(answers, 45) == (2.0, 1)


def test_a_run_gets_the_answer_issued_before_its_start() -> None:
    answers = kept((0, 10), (1, 20), (2, 30), (3, 40))
    assert [number(answers, at) for at in (9, 10, 19, 25, 30)] == [
        None,
        (1.0, 3),
        (1.0, 3),
        (2.0, 2),
        (3.0, 1),
    ]


def test_of_values_known_at_once_only_the_last_answer_counts() -> None:
    answers = kept((0, 10), (1, 20), (2, 20), (3, 20), (4, 30))
    assert number(answers, 20) == (4.0, 1)


def test_a_method_that_joined_after_an_answer_abstained_then() -> None:
    issued = kept((0, 10), (1, 20)).issued(15, 2)
    assert issued is not None
    np.testing.assert_array_equal(issued.numbers, [1.0, np.nan])


def test_a_longer_answer_is_not_used() -> None:
    assert kept((0, 10), (1, 20)).issued(15, 0) is None


def test_old_answers_are_dropped_unless_runs_take_so_long() -> None:
    short = kept(*((at, at + 1) for at in range(0, 1000, 10)))
    assert number(short, 500) is None
    long = kept(*((at, at + 600) for at in range(0, 1000, 10)))
    assert number(long, 1000) is not None
    assert len(state.dump(long)) < 60 * MAX_ROWS


def test_of_a_burst_only_few_outcomes_count() -> None:
    assert sum(OutcomeSampling().counts(overlap) for overlap in range(100)) <= 6
    assert sum(OutcomeSampling(0.5).counts(overlap) for overlap in range(100)) <= 20
    assert all(OutcomeSampling().counts(0) for _ in range(10))
