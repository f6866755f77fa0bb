"""``manage.py hold``, and ``manage.py run`` of more than one series."""

from __future__ import annotations

import os
import pwd
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from monitor.models import Hold, Run, Series

PAUSE = ("hold", "pause", "--site=site-of-here", "--why=disk swap")
ME = f"{pwd.getpwuid(os.getuid()).pw_name} (command line)"


def output_of(*argv: str) -> str:
    out = StringIO()
    call_command(*argv, stdout=out)
    return out.getvalue()


def test_a_hold_is_listed_until_it_is_resumed(circle: Series) -> None:
    assert output_of("hold", "list") == "there is no hold\n"
    assert f"site site-of-here: paused; paused by {ME} since" in output_of(*PAUSE)
    assert "disk swap" in output_of("hold", "list")
    assert "site site-of-here: resumed" in output_of(
        "hold", "resume", "--site=site-of-here", "--why=new disks"
    )
    assert output_of("hold", "list") == "there is no hold\n"
    log = output_of("hold", "list", "--log")
    assert "disk swap; ended" in log
    assert log.endswith(f"by {ME}: new disks\n")


def test_drain_can_wait_until_no_run_is_left(circle: Series) -> None:
    lines = output_of("hold", "drain", "--reporter=home", "--why=upgrade", "--wait").splitlines()
    assert len(lines) == 2
    assert all(line.startswith("reporter home: drained;") for line in lines)


@pytest.mark.parametrize("option", ["--until=2099-03-01T18:00Z", "--until=2099-03-01 18:00"])
def test_a_hold_may_end_at_a_time_in_utc(circle: Series, option: str) -> None:
    output_of(*PAUSE, option)
    assert Hold.objects.get().until == datetime(2099, 3, 1, 18, 0, tzinfo=UTC)


def test_a_hold_may_have_a_duration_in_hours(circle: Series) -> None:
    output_of(*PAUSE, "--hours=1.5")
    hold = Hold.objects.get()
    assert hold.until == hold.began_at + timedelta(hours=1.5)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((*PAUSE, "--until=soon"), "expected a time such as"),
        ((*PAUSE, "--until=2099-13-41T18:00Z"), "expected a time such as"),
        ((*PAUSE, "--until=2020-01-01T00:00Z"), "expected a time after"),
        ((*PAUSE, "--hours=1e300"), "expected a number of hours"),
        ((*PAUSE, "--hours=nan"), "expected a number of hours"),
        ((*PAUSE, "--hours=0"), "expected a time after"),
        (("hold", "pause", "--site=nowhere", "--why=x"), "there is no site nowhere"),
        (("hold", "pause", "--site=site-of-here", "--why= "), "expected a reason"),
        (("hold", "pause", "--why=x"), "one of the arguments"),
        (("hold", "resume", "--suite=main", "--why=x"), "the suite main is not held"),
        (("run",), "expected a series, --suite"),
        (("run", "--site=site-of-here"), "expected a reason"),
    ],
)
def test_an_invalid_request_is_refused_with_its_reason(
    circle: Series, argv: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(CommandError, match=expected):
        output_of(*argv)
    assert not Hold.objects.exists()
    assert not Run.objects.exists()


def test_a_request_for_a_suite_stores_user_and_reason(circle: Series) -> None:
    assert output_of("run", "--suite=main", "--why=new disks").startswith("circle: requested, run ")
    assert Run.objects.get().trigger == f"asked for by {ME} for the suite main: new disks"


def test_a_series_under_a_hold_runs_only_with_force(circle: Series) -> None:
    output_of(*PAUSE)
    with pytest.raises(CommandError, match="the site site-of-here is paused by"):
        output_of("run", "circle")
    assert output_of("run", "--suite=main", "--why=x", "--force").startswith("circle: requested")
    assert Run.objects.get().forced
