"""Which segment the next run belongs to is kept, and seen to be behind when what it was told from changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from monitor.forecasts import lookup_sql
from monitor.ingest.service import ingest
from monitor.models import Binding, CurrentSegment, Resource, Series
from monitor.models.current_segment import path_of, resources_of
from monitor.series.current_segment import store_current_segments, store_missing_segments
from reporters import report as wire
from tests.monitor.builders import circle_report


def deliver(slot: datetime) -> None:
    ingest(wire.to_json(circle_report(slot)))


def test_a_series_without_a_run_begins_a_segment(circle: Series) -> None:
    assert store_current_segments([circle.pk]) == {circle.pk: None}
    assert CurrentSegment.objects.get().segment is None


def test_who_has_run_goes_on_with_his_segment(circle: Series, noon: datetime) -> None:
    deliver(noon)
    store_current_segments([circle.pk])
    kept = CurrentSegment.objects.get()
    assert (kept.segment, kept.application) == (circle.segments.get(), "circle")
    assert (kept.path, kept.resources) == ("ring=here,there", "here,there")


def holds(series: Series) -> bool:
    """Whether what is kept of *series* is as it is."""
    found = lookup_sql.one(series.name, "total.seconds", timezone.now(), {"user": 0, "sees_all": True})
    assert found is not None
    return found.place.is_current


def test_those_of_which_nothing_is_kept_yet_are_found(circle: Series) -> None:
    assert store_missing_segments("gather") == 0
    assert store_missing_segments("circle") == 1
    assert store_missing_segments("circle") == 0


def test_whoever_changes_parameters_bindings_or_names_is_noticed(circle: Series, noon: datetime) -> None:
    deliver(noon)
    assert not holds(circle)
    store_current_segments([circle.pk])
    assert holds(circle)
    changes: list[Callable[[], object]] = [
        lambda: Series.objects.update(parameters={"file_bytes": 2000}),
        lambda: Series.objects.update(probe="gather"),
        lambda: Resource.objects.filter(name="there").update(name="elsewhere"),
        lambda: Binding.objects.filter(position=1).delete(),
    ]
    for change in changes:
        with transaction.atomic():
            change()
            assert not holds(circle)
            transaction.set_rollback(True)
    assert holds(circle)


def test_a_change_of_when_it_runs_is_none_of_what_it_measures(circle: Series, noon: datetime) -> None:
    deliver(noon)
    store_current_segments([circle.pk])
    Series.objects.update(schedule="@hourly", created_at=circle.created_at - timedelta(days=1), enabled=False)
    assert holds(circle)


def test_a_series_that_is_gone_is_left_out(circle: Series) -> None:
    assert store_current_segments([circle.pk, circle.pk + 1]) == {circle.pk: None}


def test_a_path_is_written_in_one_way() -> None:
    bindings = {"sources": ["beta", "alpha"], "compute": ["beta"]}
    assert path_of(bindings) == "compute=beta;sources=beta,alpha"
    assert resources_of(bindings) == "alpha,beta"
