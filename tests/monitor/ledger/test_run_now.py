"""Requested runs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from monitor.ledger.run_now import run_now
from monitor.models import Run, Series
from reporters.report import run_id


def test_repeated_requests_return_the_same_waiting_run(circle: Series, noon: datetime) -> None:
    runs = {run_now(circle, who="ada", now=noon + timedelta(milliseconds=n)).pk for n in range(100)}
    assert len(runs) == Run.objects.count() == 1


def test_a_slot_of_a_series_has_one_run(circle: Series, noon: datetime) -> None:
    assert run_now(circle, who="ada", now=noon) == run_now(circle, who="bob", now=noon)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.create(id=run_id("other", noon), series=circle, slot=noon, due_at=noon)
