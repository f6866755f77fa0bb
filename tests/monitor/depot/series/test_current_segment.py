"""The current segment is stored, and recognised as outdated when the setup of the series changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from monitor.analysis.forecasts import lookup
from monitor.analysis.forecasts.not_ready import NotReady
from monitor.analysis.forecasts.statements import fetch
from monitor.depot.series.current_segment import MAX_SERIES, store_current_segments, store_missing_segments
from monitor.models import Binding, CurrentSegment, Resource, Series
from monitor.models.current_segment import path_of, resources_of
from monitor.runs.ingest.service import ingest
from reporters import report as wire
from tests.monitor.builders import circle_report


def deliver(slot: datetime) -> None:
    ingest(wire.to_json(circle_report(slot)))


def test_a_series_without_a_run_begins_a_segment(circle: Series) -> None:
    assert store_current_segments([circle.pk]) == {circle.pk: None}
    assert CurrentSegment.objects.get().segment is None


def test_a_series_that_has_run_continues_its_segment(circle: Series, noon: datetime) -> None:
    deliver(noon)
    store_current_segments([circle.pk])
    stored = CurrentSegment.objects.get()
    assert (stored.segment, stored.application) == (circle.segments.get(), "circle")
    assert (stored.path, stored.resources) == ("ring=here,there", "here,there")


def is_current(series: Series) -> bool:
    """Return whether the stored segment of *series* is up to date."""
    names = {"series": series.name, "metric": "total.seconds", "at": timezone.now(), "forecast": None}
    (answer,) = fetch(
        lookup.ForecastAnswer, lookup._ANSWER, {"user": 0, "identity": None, "sees_all": True, **names}
    )
    return answer.is_current


def test_series_without_a_stored_segment_are_found(circle: Series) -> None:
    assert store_missing_segments("gather") == 0
    assert store_missing_segments("circle") == 1
    assert store_missing_segments("circle") == 0


def test_one_call_stores_a_limited_number_of_segments(circle: Series) -> None:
    Series.objects.bulk_create(copies(circle, 3))
    assert [store_missing_segments("circle", at_most=3) for _ in range(3)] == [3, 1, 0]


@pytest.mark.nightly
def test_a_ranking_waits_for_the_paths_of_thousands_of_new_series(circle: Series) -> None:
    Series.objects.bulk_create(copies(circle, MAX_SERIES))
    user = User.objects.create_superuser("root")
    rank = partial(
        lookup.candidates, user, "path", ["ring=here,there"], metric="total.seconds", probability=0.5
    )
    with pytest.raises(NotReady, match="the paths of the series of circle are being stored"):
        rank(application="circle")
    assert [candidate.name for candidate in rank(application="circle")] == ["circle"]


def copies(series: Series, count: int) -> list[Series]:
    fields = {field.name: getattr(series, field.name) for field in Series._meta.fields}
    return [Series(**{**fields, "id": None, "name": f"copy-{number}"}) for number in range(count)]


def test_changes_of_parameters_bindings_or_names_make_the_stored_segment_outdated(
    circle: Series, noon: datetime
) -> None:
    deliver(noon)
    assert not is_current(circle)
    store_current_segments([circle.pk])
    assert is_current(circle)
    changes: list[Callable[[], object]] = [
        lambda: Series.objects.update(parameters={"file_bytes": 2000}),
        lambda: Series.objects.update(probe="gather"),
        lambda: Resource.objects.filter(name="there").update(name="elsewhere"),
        lambda: Binding.objects.filter(position=1).delete(),
    ]
    for change in changes:
        with transaction.atomic():
            change()
            assert not is_current(circle)
            transaction.set_rollback(True)
    assert is_current(circle)


def test_a_change_of_schedule_keeps_the_stored_segment_current(circle: Series, noon: datetime) -> None:
    deliver(noon)
    store_current_segments([circle.pk])
    Series.objects.update(schedule="@hourly", created_at=circle.created_at - timedelta(days=1), enabled=False)
    assert is_current(circle)


def test_a_series_that_does_not_exist_is_left_out(circle: Series) -> None:
    assert store_current_segments([circle.pk, circle.pk + 1]) == {circle.pk: None}


def test_a_path_has_one_canonical_form() -> None:
    bindings = {"sources": ["beta", "alpha"], "compute": ["beta"]}
    assert path_of(bindings) == "compute=beta;sources=beta,alpha"
    assert resources_of(bindings) == "alpha,beta"
