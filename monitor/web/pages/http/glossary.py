"""What the pages' words mean, in one place. The address of a term is ``/help/#term-NAME``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.depot.series.staleness import Staleness
from monitor.models.run import State
from monitor.runs.ledger.attribution import STATE_LABELS

RUN_STATES: Mapping[State, str] = {
    State.EXPECTED: "The slot is in the ledger; no reporter has claimed it yet.",
    State.CLAIMED: "A reporter has claimed the run and has not started it.",
    State.RUNNING: "The reporter has started the run and renews its lease.",
    State.PASSED: "Every stage passed and every check of the result held.",
    State.FAILED: "An operation at a site failed, or a result was wrong. Counts against the site at fault.",
    State.TIMED_OUT: "The run took longer than its time limit and was ended. Counts like a failure.",
    State.BROKEN: "The probe itself failed by a fault of gridcast. Counts against no site.",
    State.NO_DATA: "The probe does not apply here, for example because no job has ended yet.",
    State.SKIPPED: "Not started on purpose: a pause, maintenance or an exclusive run, as the run says.",
    State.MISSED: "No reporter claimed the run in time. A fault of gridcast.",
    State.LOST: "A reporter claimed the run and never reported it. A fault of gridcast.",
}
FRESHNESS: Mapping[Staleness, str] = {
    Staleness.CURRENT: "The newest result is as new as the schedule says.",
    Staleness.STALE: "Older than twice the longest gap of the schedule plus the time limit of a run.",
    Staleness.NEVER_SEEN: "No result has arrived yet.",
    Staleness.IMPORTED: "History of another system; never counts as current.",
}


@dataclass(frozen=True)
class Term:
    name: str
    meaning: str


TERMS: Mapping[str, tuple[Term, ...]] = {
    "Grid": (
        Term("Site", "An institution with resources. Availability and pauses are counted by site."),
        Term("Resource", "A login host, file server or batch system of a site, with its access methods."),
        Term("Probe", "A program that uses the grid as an application would, in stages."),
        Term("Suite", "A group of series with the same viewers."),
        Term("Series", "A probe with parameters, resources and a schedule; its runs are comparable."),
        Term("Segment", "A part of a series between two changes of its configuration."),
        Term("Stage", "A timed part of a run, of a category: setup, transfer, queue, compute or cleanup."),
        Term("Reporter", "The process that runs probes: at home, or as an agent at a site."),
        Term("Slot", "The time at which a run is scheduled."),
    ),
    "Durations and statistics": (
        Term("Duration", "Seconds from the start to the end of a passed run, unless a stage is named."),
        Term("Median, p10, p90", "Half, a tenth, nine tenths of the values are at or below it."),
        Term("Lag", "Seconds from the end of a run until its report was stored."),
        Term("Clock offset", "How far the clock of a reporter is ahead; its reports are corrected by it."),
        Term("Change point", "A time at which the level of a series changed lastingly."),
    ),
    "Failures and alerts": (
        Term("Failure at this site, elsewhere", "Which resource the failed operation was at."),
        Term("Cause, signature", "A cause is recognised by its signature: patterns on the text of an error."),
        Term("Episode", "Consecutive failures of a series with the same cause, up to the next passed run."),
        Term("Alert", "Open while the condition of its rule holds, such as 3 consecutive failures."),
        Term("Incident", "Alerts with a common cause, with acknowledgement, comments and a timeline."),
        Term("Monitoring fault", "Broken, missed or lost runs: gridcast failed, not the grid."),
    ),
    "Forecasts": (
        Term("Prediction interval", "Holds the next value with the stated probability, if the run passes."),
        Term("Success probability", "How likely the next run passes."),
        Term("Expected time with retries", "Mean time until a run has passed, if failed runs are repeated."),
        Term("Coverage", "Share of values inside the interval; 80 % is right for an 80 % interval."),
        Term("Mean absolute error", "Mean distance between forecast and actual value, in the metric's unit."),
        Term(
            "Error vs. last value (MASE)",
            "Error divided by that of the last value; below 1 is better.",
        ),
        Term("Predictor", "A metric of a probe from which the forecast of an application learns."),
    ),
    "Operations": (
        Term("Pause", "No new runs start; queued runs are cancelled. It has an end and a reason."),
        Term("Drain", "No new runs start; queued runs finish."),
        Term("Maintenance window", "Announced time without runs; it lowers availability, not reliability."),
        Term("Exclusive", "A run during which no other run uses its resources."),
        Term("Availability", "Time up divided by known time; maintenance counts as down."),
        Term("Reliability", "Time up divided by known time without maintenance."),
        Term("Data coverage", "Share of the time for which there are results."),
    ),
}


def state_terms() -> list[tuple[str, str, str]]:
    """Return the states of runs: value, label and meaning."""
    return [(state.value, STATE_LABELS[state], meaning) for state, meaning in RUN_STATES.items()]
