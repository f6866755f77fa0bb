"""Skips of tests that need root and TUN devices; a directory whose path is short enough for sockets."""

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
    lacking = [*lacking_rights(), *missing(("ip", *programs))]
    if lacking:
        pytest.skip("; ".join(lacking))


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="wan-", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)
