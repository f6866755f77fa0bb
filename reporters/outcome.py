"""Decide the outcome of a run, its reason and its failure, from the errors of its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.base import InvalidParameters, NoData, OutOfTime, ProbeFailed
from reporters.load import TooBusy
from reporters.report import Failure

CLEANUP = "cleanup"
HARMLESS = (NoData, TooBusy)  # no failure, but no value either


@dataclass(frozen=True)
class StageException:
    """An exception that a stage raised."""

    stage: str
    error: BaseException


@dataclass(frozen=True)
class RunVerdict:
    outcome: str
    reason: str
    failure: Failure | None


def decide(troubles: Sequence[StageException]) -> RunVerdict:
    """Return the verdict on a run whose stages raised *troubles*, in this order.

    The first error decides. NoData and TooBusy are no errors: they decide only if there is no error, for
    example of the cleanup.
    """
    failures = [trouble for trouble in troubles if not isinstance(trouble.error, HARMLESS)]
    if failures:
        return _failed(failures[0])
    if troubles:
        return _without_value(troubles[0].error)
    return RunVerdict("passed", "", None)


def _without_value(error: BaseException) -> RunVerdict:
    if isinstance(error, TooBusy):
        return RunVerdict("skipped", str(error), None)
    return RunVerdict("no_data", f"does not apply here: {error}", None)


def _failed(trouble: StageException) -> RunVerdict:
    error, stage = trouble.error, trouble.stage
    if isinstance(error, InvalidParameters):
        return RunVerdict("broken", f"invalid parameters: {error}", Failure(stage, None, str(error)))
    if not isinstance(error, ProbeFailed):
        message = f"{type(error).__name__}: {error}"
        return RunVerdict("broken", f"{stage} broke: {message}", Failure(stage, None, message))
    where = f"{stage} at {error.resource}" if error.resource else stage
    failure = Failure(stage, error.resource, error.message, error.exit_status, error.stderr_tail)
    if isinstance(error, OutOfTime):
        return RunVerdict("timed_out", f"{where} ran out of time: {error.message}", failure)
    return RunVerdict("failed", f"{where} failed: {error.message}", failure)
