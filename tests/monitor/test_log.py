"""Levels of the answers that Django logs."""

from __future__ import annotations

import logging

import pytest
from django.http import HttpRequest, HttpResponse
from django.utils.log import log_response


@pytest.mark.parametrize(
    ("status", "level", "has_traceback"),
    [(404, "WARNING", True), (500, "ERROR", True), (503, "WARNING", False), (507, "WARNING", False)],
)
def test_a_busy_answer_is_a_warning_of_one_line_and_an_error_stays_an_error(
    caplog: pytest.LogCaptureFixture, status: int, level: str, has_traceback: bool
) -> None:
    error = RuntimeError("broken")
    with caplog.at_level(logging.INFO, "django.request"):
        log_response(
            "%s", "/api", response=HttpResponse(status=status), request=HttpRequest(), exception=error
        )
    (record,) = caplog.records
    assert (record.levelname, record.exc_info is not None) == (level, has_traceback)
