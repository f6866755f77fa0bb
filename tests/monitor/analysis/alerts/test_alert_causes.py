"""An alert belongs to the incident of its cause."""

from __future__ import annotations

import pytest

from monitor.analysis.alerts.alert_causes import AlertCause, AlertFacts, cause_of

REPORTER_SILENT = AlertCause("reporter", "ncsa", "unseen_seconds")


@pytest.mark.parametrize(
    ("alert", "silent", "cause"),
    [
        (AlertFacts("unseen_seconds", "", "ncsa", False), [], REPORTER_SILENT),
        (
            AlertFacts("lag_seconds", "", "ncsa", False),
            ["ncsa"],
            AlertCause("reporter", "ncsa", "lag_seconds"),
        ),
        (AlertFacts("silent_seconds", "s", "ncsa", False), ["ncsa"], REPORTER_SILENT),
        (AlertFacts("failures_in_row", "s", "ncsa", False), ["ncsa"], REPORTER_SILENT),  # runs were missed
        (
            AlertFacts("silent_seconds", "s", "ncsa", False),
            ["sdsc"],
            AlertCause("series", "s", "silent_seconds"),
        ),
        (AlertFacts("failures_in_row", "s", "ncsa", True), [], None),
        (AlertFacts("failures_in_row", "s", "ncsa", True), ["ncsa"], None),
    ],
)
def test_silent_series_share_the_cause_of_their_silent_reporter(
    alert: AlertFacts, silent: list[str], cause: AlertCause | None
) -> None:
    assert cause_of(alert, silent) == cause
