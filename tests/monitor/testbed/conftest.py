"""Demos that a test starts, and that are gone after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from monitor.embedded.clean import clean
from tests.monitor.testbed.demos import Demo


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Demo]]:
    """Starts one: anew, or where one *before* it has ended."""
    started: list[Demo] = []

    def fresh() -> Path:
        directory = tmp_path_factory.mktemp("demo")
        directory.chmod(0o755)
        return directory

    def start(*options: str, before: Demo | None = None) -> Demo:
        started.append(Demo(before.directory if before else fresh(), *options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        clean(one.var)
