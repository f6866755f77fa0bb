"""One throwaway PostgreSQL and Valkey for the whole test run, unless the environment names some.

Loaded with ``-p`` (pyproject.toml), because pytest-django reads the settings before any conftest.py is
imported. Workers of pytest-xdist inherit the environment of the controller, and with it the servers; of the
throwaway Valkey each has its own database, as counters and limits are shared by all who use one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Hundreds of tests empty tables, and each table is a file: on a disk that is slow.
MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
# All tests of a worker are one caller, whose budget of processor time they would exceed together.
BUDGETS = {"GRIDCAST_PROCESSOR_SECONDS": "1000", "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": "1000"}
DATABASES = 16  # of a Valkey with its default configuration
OWN_SERVER = "GRIDCAST_TESTS_OWN_SERVER"  # set if the PostgreSQL of this run is the run's own


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is not None:
        _choose_database(int(worker.removeprefix("gw")))
    elif not _asks_for_text_only(early_config):
        stack = contextlib.ExitStack()
        early_config.add_cleanup(stack.close)
        _start(stack)
    return (yield)


def _choose_database(worker: int) -> None:
    """Export a REDIS_URL of this worker alone, unless the environment of the run named a server."""
    url = os.environ["REDIS_URL"]
    if url.startswith("redis+socket://") and "?" not in url:
        os.environ["REDIS_URL"] = f"{url}?virtual_host={worker % DATABASES}"


def _asks_for_text_only(config: pytest.Config) -> bool:
    options = config.known_args_namespace
    return bool(options.help or options.version)


def _start(stack: contextlib.ExitStack) -> None:
    """Export GRIDCAST_VAR, DATABASE_URL and REDIS_URL until *stack* is closed."""
    from monitor.operations.embedded.throwaway import throwaway

    stack.enter_context(_exported({"GRIDCAST_VAR": str(_directory(stack) / "var")}))
    servers = _directory(stack, MEMORY if _has_room(MEMORY) else None) / "servers"
    urls = stack.enter_context(throwaway(servers))
    own = {OWN_SERVER: "1"} if "DATABASE_URL" in urls else {}
    stack.enter_context(_exported({**urls, **own, **BUDGETS}))


def _directory(stack: contextlib.ExitStack, where: Path | None = None) -> Path:
    """Make a directory until *stack* is closed, readable by all: as root, PostgreSQL runs as another user."""
    directory = Path(tempfile.mkdtemp(prefix="gridcast-tests-", dir=where))
    stack.callback(shutil.rmtree, directory, ignore_errors=True)
    directory.chmod(0o755)
    return directory


def _has_room(memory: Path) -> bool:
    """Whether the data of the whole run fit there; in containers /dev/shm often has a few megabytes."""
    if not os.access(memory, os.W_OK | os.X_OK):
        return False
    room = os.statvfs(memory)
    return room.f_bavail * room.f_frsize >= ROOM_BYTES


@contextlib.contextmanager
def _exported(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
