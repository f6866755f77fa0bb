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


def said(*argv: str) -> str:
    out = StringIO()
    call_command(*argv, stdout=out)
    return out.getvalue()


def test_what_is_paused_is_listed_until_it_is_resumed(circle: Series) -> None:
    assert said("hold", "list") == "nothing is held\n"
    assert f"site site-of-here: paused; paused by {ME} since" in said(*PAUSE)
    assert "disk swap" in said("hold", "list")
    assert "site site-of-here: resumed" in said("hold", "resume", "--site=site-of-here", "--why=new disks")
    assert said("hold", "list") == "nothing is held\n"
    log = said("hold", "list", "--log")
    assert "disk swap; ended" in log
    assert log.endswith(f"by {ME}: new disks\n")


def test_a_drain_can_be_waited_for(circle: Series) -> None:
    lines = said("hold", "drain", "--reporter=home", "--why=upgrade", "--wait").splitlines()
    assert len(lines) == 2
    assert all(line.startswith("reporter home: drained;") for line in lines)


@pytest.mark.parametrize("option", ["--until=2099-03-01T18:00Z", "--until=2099-03-01 18:00"])
def test_a_hold_may_have_an_end_in_utc(circle: Series, option: str) -> None:
    said(*PAUSE, option)
    assert Hold.objects.get().until == datetime(2099, 3, 1, 18, 0, tzinfo=UTC)


def test_a_hold_may_last_some_hours(circle: Series) -> None:
    said(*PAUSE, "--hours=1.5")
    made = Hold.objects.get()
    assert made.until == made.began_at + timedelta(hours=1.5)


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
        (("run",), "expected the name of something"),
        (("run", "--site=site-of-here"), "expected a reason"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(circle: Series, argv: tuple[str, ...], expected: str) -> None:
    with pytest.raises(CommandError, match=expected):
        said(*argv)
    assert not Hold.objects.exists()
    assert not Run.objects.exists()


def test_all_of_a_suite_are_asked_for_and_who_and_why_is_kept(circle: Series) -> None:
    assert said("run", "--suite=main", "--why=new disks").startswith("circle: asked for, run ")
    assert Run.objects.get().trigger == f"asked for by {ME} for the suite main: new disks"


def test_a_held_series_is_run_only_by_force(circle: Series) -> None:
    said(*PAUSE)
    with pytest.raises(CommandError, match="the site site-of-here is paused by"):
        said("run", "circle")
    assert said("run", "--suite=main", "--why=x", "--force").startswith("circle: asked for")
    assert Run.objects.get().forced
