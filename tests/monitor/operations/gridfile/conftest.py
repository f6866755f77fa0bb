"""A complete grid file, and the command for grid files."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command

DATA = Path(__file__).parent / "data"

GridCommand = Callable[..., tuple[int, str]]


@pytest.fixture
def whole() -> str:
    return (DATA / "whole.yaml").read_text(encoding="utf-8")


@pytest.fixture
def operators(db: None) -> Group:
    """Create the user group that the complete file names."""
    return Group.objects.create(name="operators")


@pytest.fixture
def grid() -> GridCommand:
    """Run ``manage.py grid``; return its exit status, and its output with errors."""

    def run(*arguments: str | Path) -> tuple[int, str]:
        output = StringIO()
        try:
            call_command("grid", *map(str, arguments), stdout=output, stderr=output, no_color=True)
        except SystemExit as exit_:
            return int(exit_.code or 0), output.getvalue()
        return 0, output.getvalue()

    return run
