"""Commands that lack something name it in one line, without a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.management.recorded_commands import RecordingUtility
from monitor.models import ApiToken, Reporter, Series
from monitor.runs.ledger import heartbeats
from monitor.runs.ledger.run_now import run_now

ROOT = Path(__file__).resolve().parents[2]


def stderr_of(var: Path, *argv: str, **environment: str) -> str:
    """Run a command that must fail without a traceback; return its standard error."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *argv],
        env={**os.environ, "GRIDCAST_VAR": str(var), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://db/depot", "DATABASE_URL: expected postgresql://"),
        ("postgresql://db:abc/depot", "DATABASE_URL: expected a number"),
        ("postgresql://gridcast@127.0.0.1:1/depot", "set GRIDCAST_VAR to the state of a running service"),
    ],
)
def test_an_unavailable_depot_is_named_with_a_remedy(tmp_path: Path, url: str, expected: str) -> None:
    assert expected in stderr_of(tmp_path, "token", "issue", "ada", DATABASE_URL=url)


def test_an_invalid_state_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in stderr_of(tmp_path / "file" / "var", "token", "issue", "ada")


def test_a_command_whose_reader_has_read_enough_ends_without_a_word() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "grid", "schema"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.django_db
def test_djangos_checks_find_nothing() -> None:
    call_command("check", fail_level="WARNING")


def test_commands_check_the_settings_and_load_no_page(settings: LazySettings) -> None:
    settings.ROOT_URLCONF = "no_such_module"
    settings.GRIDCAST_LEASE_SECONDS = 1.0
    command = RecordingUtility(["manage.py", "stats"]).fetch_command("stats")
    with pytest.raises(CommandError) as caught:
        call_command(command, "circle", skip_checks=False)
    assert "at least three heartbeats" in str(caught.value)


@pytest.mark.parametrize("port", ["-4", "0", "99999"])
def test_an_invalid_port_is_refused_at_once(port: str) -> None:
    with pytest.raises(CommandError, match="from 1 to 65535"):
        call_command("demo", f"--port={port}")


def test_a_port_in_use_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(CommandError, match=r"cannot listen on 127\.0\.0\.1: .*in use; omit"):
            call_command("demo", f"--port={port}")


def test_an_unwritable_summary_file_is_refused_before_the_rounds(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot write"):
        call_command("demo", "--rounds=1", "--exit", f"--json={tmp_path}")


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "fast"])
def test_an_invalid_time_scale_of_the_testbed_is_refused(tmp_path: Path, scale: str) -> None:
    with pytest.raises(CommandError, match="scale"):
        call_command("testbed", "up", f"--scale={scale}", f"--directory={tmp_path}")


@pytest.mark.django_db
def test_a_token_name_that_is_too_long_is_refused() -> None:
    User.objects.create_user("ada")
    with pytest.raises(CommandError, match="name: expected 1 to 100 characters"):
        call_command("token", "issue", "ada", "--name", "n" * 101)


def test_a_token_that_reports_is_bound_to_a_reporter(circle: Series) -> None:
    User.objects.create_user("ada")
    for options in (["--scope=report"], ["--reporter=home"]):
        with pytest.raises(CommandError, match="need each other"):
            call_command("token", "issue", "ada", *options)
    with pytest.raises(CommandError, match="there is no reporter 'ncsa'; there are: home"):
        call_command("token", "issue", "ada", "--scope=report", "--reporter=ncsa")
    call_command("token", "issue", "ada", "--scope=report", "--reporter=home", stdout=StringIO())
    assert [str(token.reporter) for token in ApiToken.objects.all()] == ["home"]


def test_a_requested_run_fails_without_a_scheduler(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    with pytest.raises(CommandError, match="is a scheduler running"):
        call_command("run", "circle", stdout=StringIO())


def test_a_requested_run_fails_if_its_reporter_has_no_capacity(circle: Series, noon: datetime) -> None:
    heartbeats.record("beat", timezone.now())
    Reporter.objects.update(capacity=0)
    run_now(circle, who="ada", now=noon)
    with pytest.raises(CommandError, match="home has a capacity of 0"):
        call_command("run", "circle", stdout=StringIO())


def test_a_requested_run_of_a_silent_agent_says_since_when_it_was_not_seen(circle: Series) -> None:
    site = circle.bindings.select_related("resource__site")[0].resource.site
    circle.reporter = Reporter.objects.create(name="ncsa", site=site)
    circle.save()
    run_now(circle, who="ada", now=timezone.now() - timedelta(minutes=1))
    with pytest.raises(CommandError, match="runs when its agent is back: reporter ncsa has never been seen"):
        call_command("run", "circle", stdout=StringIO())
    with pytest.raises(CommandError, match="the agent of ncsa runs circle; request it without --here"):
        call_command("run", "circle", "--here", stdout=StringIO())


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        (["createsuperuser", "--noinput", "--username", "root"], "account create USER --role administrator"),
        (["changepassword", "ada"], "account password USER"),
        (["changepassword"], "account password USER"),
    ],
)
def test_commands_of_django_that_change_accounts_refuse_and_name_ours(
    command: list[str], instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        RecordingUtility(["manage.py", *command]).execute()
    refusal = f"gridcast has a command of its own, with an audit record: manage.py {instead}"
    assert refusal in capsys.readouterr().err
