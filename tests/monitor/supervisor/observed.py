"""A supervisor under observation, and what its tests wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitor.supervisor import Service, Supervisor
from monitor.supervisor.status import ServiceStatus

PATIENCE_SECONDS = 60.0


def sleeper(name: str, **more: Any) -> Service:
    return Service(name, ["sleep", "600"], **more)


class Observed:
    """A supervisor at work in a thread, and every status that it gave."""

    def __init__(self, directory: Path, *services: Service) -> None:
        self.run_directory = directory / "run"
        self.status_file = self.run_directory / "supervisor.json"
        self.said: list[tuple[str, ServiceStatus]] = []
        self._news = threading.Condition()
        self.supervisor = Supervisor(
            services, status_file=self.status_file, log_dir=directory / "log", on_change=self._listen
        )

    def _listen(self, name: str, status: ServiceStatus) -> None:
        with self._news:
            self.said.append((name, status))
            self._news.notify_all()

    def wait_for(self, name: str, state: str, *, restarts: int = 0) -> ServiceStatus:
        """The first status of *name* in *state* with at least *restarts* restarts and, when up, a pid."""
        with self._news:
            assert self._news.wait_for(lambda: self._find(name, state, restarts), PATIENCE_SECONDS), self.said
            found = self._find(name, state, restarts)
            assert found is not None
            return found

    def _find(self, name: str, state: str, restarts: int) -> ServiceStatus | None:
        for each, status in self.said:
            if (each, status.state) == (name, state) and status.restarts >= restarts:
                return status
        return None

    def states(self, name: str) -> list[str]:
        return [status.state for each, status in self.said if each == name]


@contextmanager
def running(directory: Path, *services: Service) -> Iterator[Observed]:
    observed = Observed(directory, *services)
    with observed.supervisor.running(up_within_seconds=PATIENCE_SECONDS):
        yield observed


@contextmanager
def trying(directory: Path, service: Service) -> Iterator[Observed]:
    """A supervisor of what will not come up; nobody waits until it does."""
    observed = Observed(directory, service)
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    try:
        yield observed
    finally:
        observed.supervisor.request_stop()
        thread.join()
