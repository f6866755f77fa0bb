"""The decision on the outcome of a run."""

from __future__ import annotations

import pytest

from probes.base import InvalidParameters, NoData, OutOfTime, ProbeFailed
from reporters.load import TooBusy
from reporters.outcome import StageException, decide
from reporters.report import Failure

FAILED = ProbeFailed("cannot copy", resource="ncsa", exit_status=4, stderr_tail="lost")


@pytest.mark.parametrize(
    ("troubles", "outcome", "reason"),
    [
        ([], "passed", ""),
        ([("compute", FAILED)], "failed", "compute at ncsa failed: cannot copy"),
        ([("compute", ProbeFailed("odd"))], "failed", "compute failed: odd"),
        ([("init", OutOfTime("late", resource="iu"))], "timed_out", "init at iu ran out of time: late"),
        ([("init", NoData("no such queue"))], "no_data", "does not apply here: no such queue"),
        ([("init", ZeroDivisionError("by zero"))], "broken", "init broke: ZeroDivisionError: by zero"),
        ([("prepare", InvalidParameters("n: 0"))], "broken", "invalid parameters: n: 0"),
        ([("cleanup", FAILED)], "failed", "cleanup at ncsa failed: cannot copy"),
        ([("init", OutOfTime("late")), ("cleanup", FAILED)], "timed_out", "init ran out of time: late"),
        ([("init", FAILED), ("cleanup", KeyError("x"))], "failed", "init at ncsa failed: cannot copy"),
        ([("init", KeyError("x")), ("cleanup", FAILED)], "broken", "init broke: KeyError: 'x'"),
        ([("init", NoData("none")), ("cleanup", FAILED)], "failed", "cleanup at ncsa failed: cannot copy"),
        (
            [("prepare", TooBusy("load: 5 at iu, at most 4 allowed"))],
            "skipped",
            "load: 5 at iu, at most 4 allowed",
        ),
        (
            [("prepare", TooBusy("load: 5")), ("cleanup", FAILED)],
            "failed",
            "cleanup at ncsa failed: cannot copy",
        ),
    ],
)
def test_the_first_error_decides_the_outcome(
    troubles: list[tuple[str, Exception]], outcome: str, reason: str
) -> None:
    verdict = decide([StageException(stage, error) for stage, error in troubles])
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_a_failure_is_kept_verbatim() -> None:
    failure = decide([StageException("compute", FAILED)]).failure
    assert failure == Failure("compute", "ncsa", "cannot copy", 4, "lost")


@pytest.mark.parametrize("troubles", [[], [StageException("init", NoData("none"))]])
def test_a_run_without_an_error_has_no_failure(troubles: list[StageException]) -> None:
    assert decide(troubles).failure is None
