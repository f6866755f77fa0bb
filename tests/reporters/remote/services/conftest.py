"""A state directory and the launch of a stand-in agent from it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporters.remote import agent_process


@pytest.fixture
def state() -> Iterator[Path]:
    """A state directory, on a short path; its agents are stopped in the end."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="state-") as directory:
        yield Path(directory)
        agent_process.stop(Path(directory))
