"""What became of a run: the outcome, its reason in words and the failure, decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import NoData, OutOfTime, ProbeFailed
from reporters.load import TooBusy
from reporters.report import Failure

CLEANUP = "cleanup"
HARMLESS = (NoData, TooBusy)  # nothing is wrong, yet there is no value


@dataclass(frozen=True)
class Trouble:
    """Something that a stage raised."""

    stage: str
    error: BaseException


@dataclass(frozen=True)
class Verdict:
    outcome: str
    reason: str
    failure: Failure | None


def decide(troubles: Sequence[Trouble]) -> Verdict:
    """The verdict on a run, from what went wrong in it, in order.

    The first thing that went wrong counts. That a probe does not apply here, or that a resource is too busy
    for it, is nothing wrong: it stays the verdict only if the cleanup went well.
    """
    wrong = [trouble for trouble in troubles if not isinstance(trouble.error, HARMLESS)]
    if wrong:
        return _of(wrong[0])
    if troubles:
        return _of_harmless(troubles[0].error)
    return Verdict("passed", "every stage passed", None)


def _of_harmless(error: BaseException) -> Verdict:
    if isinstance(error, TooBusy):
        return Verdict("skipped", str(error), None)
    return Verdict("no_data", f"does not apply here: {error}", None)


def _of(trouble: Trouble) -> Verdict:
    error, stage = trouble.error, trouble.stage
    if not isinstance(error, ProbeFailed):
        what = f"{type(error).__name__}: {error}"
        return Verdict("broken", f"{stage} broke: {what}", Failure(stage, None, what))
    where = f"{stage} at {error.resource}" if error.resource else stage
    failure = Failure(stage, error.resource, error.message, error.exit_status, error.stderr_tail)
    if isinstance(error, OutOfTime):
        return Verdict("timed_out", f"{where} ran out of time: {error.message}", failure)
    return Verdict("failed", f"{where} failed: {error.message}", failure)
