"""Skip a test, by name, for want of a program that cannot be installed here."""

from __future__ import annotations

import pytest

from monitor.testbed.middleware.programs import missing


def needs(*programs: str) -> None:
    """Skip unless all *programs* are installed; the summary names them with their packages."""
    absent = missing(programs)
    if absent:
        pytest.skip("; ".join(absent))
