"""Starting a server: one retry after a crash, none after a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.testbed.errors import NotServing
from monitor.testbed.middleware.server_process import serving

CRASH = "kill -SEGV $$"
SERVE = "touch up; exec sleep 600"


def test_a_server_that_crashes_at_its_start_is_started_once_more(tmp_path: Path) -> None:
    script = f"[ -e before ] || {{ touch before; {CRASH}; }}; {SERVE}"
    with serving(["sh", "-c", script], ready=(tmp_path / "up").exists, cwd=tmp_path) as running:
        assert running.poll() is None
    assert running.poll() is not None


def test_the_error_after_a_second_crash_has_status_and_output(tmp_path: Path) -> None:
    script = f"echo x >> starts; echo no luck >&2; {CRASH}"
    with (
        pytest.raises(NotServing, match=r"sh ended with status -11: no luck"),
        serving(["sh", "-c", script], ready=lambda: False, cwd=tmp_path),
    ):
        raise AssertionError
    assert (tmp_path / "starts").read_text() == "x\nx\n"


def test_a_server_that_exits_is_not_started_again(tmp_path: Path) -> None:
    script = "echo x >> starts; echo bad configuration >&2; exit 3"
    with (
        pytest.raises(NotServing, match=r"sh ended with status 3: bad configuration"),
        serving(["sh", "-c", script], ready=lambda: False, cwd=tmp_path),
    ):
        raise AssertionError
    assert (tmp_path / "starts").read_text() == "x\n"
