"""The verdicts of the admission rules on the state of the ledger, from the slot to the verdict."""

from __future__ import annotations

from datetime import datetime, timedelta

from monitor.models import Binding, MaintenanceWindow, Reporter, Run, Series, Site
from monitor.models.run import State
from monitor.runs.ledger import heartbeats, transitions
from monitor.runs.ledger.claim import claim_due
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.reap import reap
from monitor.runs.ledger.run_now import run_now

MINUTE = timedelta(minutes=1)


def test_a_slot_is_skipped_while_its_series_still_runs(circle: Series, noon: datetime) -> None:
    expand(noon)
    claim_due(noon + MINUTE)
    assert claim_due(noon + 2 * MINUTE) == []
    skipped = Run.objects.get(slot=noon + 2 * MINUTE)
    assert (skipped.state, skipped.reason[:8]) == (State.SKIPPED, "overlap:")


def test_a_requested_run_waits_until_its_series_is_free(circle: Series, noon: datetime) -> None:
    expand(noon)
    (scheduled,) = claim_due(noon + MINUTE)
    requested = run_now(circle, who="ada", now=noon + MINUTE + timedelta(seconds=1))
    assert claim_due(noon + MINUTE + timedelta(seconds=2)) == []
    transitions.move(Run.objects.all(), [scheduled.run_id], State.PASSED, cause="it ran")
    assert [claim.run_id for claim in claim_due(noon + MINUTE + timedelta(seconds=3))] == [requested.pk]


def test_a_reporter_gets_no_more_runs_than_its_capacity(circle: Series, noon: datetime) -> None:
    Reporter.objects.update(capacity=2)
    for number in range(5):
        circle.pk, circle.name = None, f"circle-{number}"
        circle.save()
        run_now(circle, who="ada", now=noon)
    assert len(claim_due(noon)) == 2
    assert claim_due(noon) == []


def another(original: Series, name: str, **changes: object) -> Series:
    """Copy the series *of* with its bindings under another name."""
    series = Series.objects.get(pk=original.pk)
    series.pk, series.name = None, name
    for field, value in changes.items():
        setattr(series, field, value)
    series.save()
    Binding.objects.bulk_create(
        Binding(series=series, role=binding.role, position=binding.position, resource=binding.resource)
        for binding in original.bindings.all()
    )
    Series.objects.update(created_at=original.created_at)
    return series


def test_exclusive_series_run_one_after_the_other_and_name_the_sites_they_wait_for(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(exclusive="link")
    another(circle, "second", exclusive="link")
    expand(noon)
    (first,) = claim_due(noon + MINUTE)
    waiting = Run.objects.get(slot=noon + MINUTE, state=State.EXPECTED)
    assert waiting.reason == "queued: exclusive: another series is using site-of-here, site-of-there"
    reap(noon + 5 * MINUTE)  # its grace time is over, its exclusive wait is not
    transitions.move(Run.objects.all(), [first.run_id], State.PASSED, cause="it ran")
    assert waiting.pk in {claim.run_id for claim in claim_due(noon + 5 * MINUTE)}


def test_a_slot_that_waited_too_long_for_an_exclusive_series_is_skipped_as_busy(
    circle: Series, noon: datetime
) -> None:
    Series.objects.update(exclusive="site", schedule="0 * * * *")
    another(circle, "second", exclusive="site", exclusive_wait_seconds=60)
    expand(noon)
    hour = noon + timedelta(hours=1)
    claim_due(hour)
    claim_due(hour + MINUTE)
    skipped = Run.objects.get(state=State.SKIPPED)
    assert (skipped.series.name, skipped.reason) == (
        "second",
        "busy: another series used site-of-here, site-of-there for 60 s",
    )


def test_a_site_takes_part_in_no_more_runs_than_its_limit(circle: Series, noon: datetime) -> None:
    another(circle, "second")
    Site.objects.filter(name="site-of-here").update(runs_at_once=1)
    expand(noon)
    assert len(claim_due(noon + MINUTE)) == 1
    assert Run.objects.get(slot=noon + MINUTE, state=State.EXPECTED).reason.startswith(
        "queued: room: the site"
    )


def test_slots_in_a_maintenance_window_are_skipped_with_its_title(circle: Series, noon: datetime) -> None:
    window = MaintenanceWindow.objects.create(
        name="disks", title="new disks", starts_at=noon, ends_at=noon + 2 * MINUTE
    )
    window.sites.add(Site.objects.get(name="site-of-there"))
    expand(noon)
    assert claim_due(noon + MINUTE) == []
    assert Run.objects.get(slot=noon + MINUTE).reason.startswith("maintenance: new disks, until ")
    assert len(claim_due(noon + 2 * MINUTE)) == 1


def test_a_silent_reporter_gets_no_runs_until_its_next_heartbeat(circle: Series, noon: datetime) -> None:
    heartbeats.record("reporter.home", noon)
    run_now(circle, who="ada", now=noon)
    assert claim_due(noon + MINUTE) == []
    heartbeats.record("reporter.home", noon + MINUTE)
    assert len(claim_due(noon + MINUTE)) == 1
