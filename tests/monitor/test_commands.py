"""Commands in surroundings that lack something: a line that says what, instead of a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.ledger import heartbeats
from monitor.ledger.run_now import run_now
from monitor.models import Reporter, Series

ROOT = Path(__file__).resolve().parents[2]


def said(var: Path, *argv: str, **environment: str) -> str:
    """What the command writes to stderr; it must fail, in one or two lines."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *argv],
        env={**os.environ, "GRIDCAST_VAR": str(var), **environment},
        capture_output=True,
        text=True,
        timeout=60,
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
        ("postgresql://nobody@127.0.0.1:1/depot", "or name another with DATABASE_URL"),
    ],
)
def test_a_depot_that_cannot_be_had_is_named_with_what_to_do(tmp_path: Path, url: str, expected: str) -> None:
    assert expected in said(tmp_path, "token", "ada", DATABASE_URL=url)


def test_a_place_that_cannot_be_a_directory_of_state_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in said(tmp_path / "file" / "var", "token", "ada")


@pytest.mark.parametrize("port", ["-4", "0", "99999"])
def test_a_port_that_there_is_not_is_refused_at_once(port: str) -> None:
    with pytest.raises(CommandError, match="from 1 to 65535"):
        call_command("demo", f"--port={port}")


def test_a_port_that_is_taken_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"port {port} on 127.0.0.1 is taken"):
            call_command("demo", f"--port={port}")


def test_a_summary_that_could_not_be_written_is_refused_before_the_rounds(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot write"):
        call_command("demo", "--rounds=1", "--exit", f"--json={tmp_path}")


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "fast"])
def test_a_grid_has_a_pace(tmp_path: Path, scale: str) -> None:
    with pytest.raises(CommandError, match="scale"):
        call_command("testbed", "up", f"--scale={scale}", f"--directory={tmp_path}")


@pytest.mark.django_db
def test_a_tokens_name_has_a_length() -> None:
    User.objects.create_user("ada")
    with pytest.raises(CommandError, match="at most 100"):
        call_command("token", "ada", name="n" * 101)


def test_without_a_scheduler_a_run_that_was_asked_for_says_so(circle: Series, noon: datetime) -> None:
    run_now(circle, who="ada", now=noon)
    with pytest.raises(CommandError, match="is a scheduler running"):
        call_command("run", "circle", stdout=StringIO())


def test_a_reporter_without_room_is_named_as_what_a_run_waits_for(circle: Series, noon: datetime) -> None:
    heartbeats.record("beat", timezone.now())
    Reporter.objects.update(capacity=0)
    run_now(circle, who="ada", now=noon)
    with pytest.raises(CommandError, match="home has a capacity of 0"):
        call_command("run", "circle", stdout=StringIO())
