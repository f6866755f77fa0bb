"""Demos that tests start; the fixtures stop them and remove their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monitor.operations.embedded.clean import clean
from tests.monitor.testbed.demo.demo_process import DemoProcess


@pytest.fixture(scope="session")
def start_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., DemoProcess]]:
    """Start a demo with the given options: in a new directory, or in that of the ended demo *after*."""
    started: list[DemoProcess] = []

    def fresh_directory() -> Path:
        directory = tmp_path_factory.mktemp("demo")
        directory.chmod(0o755)  # as root, PostgreSQL runs as another user and must reach its data
        return directory

    def start(*options: str, after: DemoProcess | None = None) -> DemoProcess:
        started.append(DemoProcess(after.directory if after else fresh_directory(), *options))
        return started[-1]

    yield start
    for demo in started:
        demo.process.kill()
        demo.process.wait()
        clean(demo.var)
