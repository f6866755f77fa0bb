"""A small grid in the depot: two sites of directories on this host, one Circle series a minute."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from monitor.gridfile.define import SeriesDefinition, define
from monitor.models import Series
from reporters.config import Resource

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def noon() -> datetime:
    return NOON


@pytest.fixture
def circle(db: None, tmp_path: Path) -> Series:
    """Circle between two directories, every minute, known to the depot since noon."""
    resources = [Resource(name, f"site-of-{name}", str(tmp_path / name)) for name in ("here", "there")]
    for resource in resources:
        (tmp_path / resource.name).mkdir()
    bindings = {"ring": ["here", "there"]}
    every_minute = SeriesDefinition("circle", "circle", bindings, {"file_bytes": 1000}, "* * * * *")
    define(resources, [every_minute])
    Series.objects.update(created_at=NOON)
    return Series.objects.get()
