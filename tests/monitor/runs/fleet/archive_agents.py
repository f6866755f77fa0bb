"""An agent of the archive: enrolled as an operator does it; runs requested as a user does it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from django.utils import timezone

from monitor.models import Reporter, Series
from monitor.runs.fleet.enrolment import create_code
from monitor.runs.ledger.run_now import run_now
from tests.monitor.runs.fleet.agents import admin


def command(pyz: Path, state: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the archive with the state directory *state*."""
    start = [sys.executable, "-I", "-S", str(pyz), argv[0], "--state", str(state), *argv[1:]]
    return subprocess.run(start, capture_output=True, text=True, check=False)


def enrol(pyz: Path, url: str, reporter: Reporter, state: Path, method: str = "openssl") -> None:
    code = create_code(reporter, admin(), timezone.now())
    done = command(pyz, state, "enrol", url, code, "--method", method)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"enrolled as ncsa at {url}")


def request_runs() -> None:
    for series in Series.objects.all():
        run_now(series, who="ada")
