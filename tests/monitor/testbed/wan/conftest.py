"""Skip what needs root and TUN devices, by name; a directory whose path is short enough for sockets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.testbed.middleware.programs import missing
from monitor.testbed.wan.requirements import lacking_rights


def needs_namespaces(*programs: str) -> None:
    """Skip unless namespaces and TUN devices can be made here, and *programs* are installed."""
    absent = [*lacking_rights(), *missing(("ip", *programs))]
    if absent:
        pytest.skip("; ".join(absent))


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="wan-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)
