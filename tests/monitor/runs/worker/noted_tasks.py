"""Tasks of tests that leave a note of their execution; workers load them with ``--include``."""

from __future__ import annotations

from pathlib import Path

from monitor.celery import app
from tests.waiting import eventually


@app.task(name="tests.note")
def note(file: str) -> None:
    Path(file).touch()


@app.task(name="tests.run_until")
def run_until(file: str, end: str) -> None:
    """Run until the file *end* exists."""
    Path(file).touch()
    eventually(Path(end).exists)
