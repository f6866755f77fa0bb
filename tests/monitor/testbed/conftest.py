"""Demos that a test starts, and that are gone after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from monitor.embedded.clean import clean
from tests.monitor.testbed.demos import Demo


@pytest.fixture
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*options: str) -> Demo:
        directory = tmp_path_factory.mktemp("demo")
        directory.chmod(0o755)
        started.append(Demo(directory, *options))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
        clean(one.var)
