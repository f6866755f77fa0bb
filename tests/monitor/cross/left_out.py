"""Models without variants, and why: a new model is varied, or named here."""

from __future__ import annotations

from collections.abc import Mapping

_COUNTED = "counted by a worker from rows that are varied, which runs at the end"
_ROLLUP = "computed by one statement, or by TimescaleDB itself, its columns together"
_QUEUE = "a queue of a worker: no page or operation shows its rows"

LEFT_OUT: Mapping[str, str] = {
    "AccountMail": _QUEUE,
    "Binding": "copied with each series",
    "DayRollup": _ROLLUP,
    "DemoWeather": "of the demo, which shows it on its own pages",
    "DirtyDay": _QUEUE,
    "DirtyHour": _QUEUE,
    "DirtyOutcome": _QUEUE,
    "EndedRun": _QUEUE,
    "EnrolmentAttempt": _QUEUE,
    "FailureHour": _COUNTED,
    "HourRollup": _ROLLUP,
    "JudgedHistory": _QUEUE,
    "LatestRun": "written by a worker, its columns together, for each series that is varied",
    "OutcomeBlock": _COUNTED,
    "OutcomeCount": _COUNTED,
    "OutcomeDay": _COUNTED,
    "OutcomeProgress": _QUEUE,
    "PendingChange": _QUEUE,
    "ProviderMetadata": "of the identity provider, whose documents no page or operation shows",
    "Recheck": _QUEUE,
    "RunSubscriber": _QUEUE,
    "SeriesStanding": _COUNTED,
    "StandingChange": _QUEUE,
    "StandingCount": _COUNTED,
    "Transition": "written by a trigger for each change of a run",
    "CurrentSegment": "written by a trigger for each series",
}

# Nullable columns that no variant can have as null, or not as null, and why.
NEVER_NULL: Mapping[str, str] = {}
NEVER_SET: Mapping[str, str] = {}

# True or false in no row, and why.
NEVER_IS: Mapping[str, str] = {}
# The constraints that refuse kinds of a model, and what they forbid.
REFUSED_BY: Mapping[tuple[str, str], str] = {
    ("Hold", "hold_open_once"): "a scope has one open hold; there are few reporters",
    ("Incident", "incident_of_a_part_open_once"): "a part has one open incident",
    ("MaintenanceWindow", "maintenance_window_once_or_recurring"): "a window has times, or a schedule",
    ("Series", "series_has_a_schedule_or_follows"): "a series has a schedule, or a leader that it follows",
    ("Suite", "suite_hours_go_first"): "coarser values are kept longer",
    ("WebhookDelivery", "webhook_delivery_due_if_pending"): "its state and times go together",
}
