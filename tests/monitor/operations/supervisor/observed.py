"""A supervisor that records every status of its services, for tests that wait for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from monitor.operations.supervisor import Service, Supervisor
from monitor.operations.supervisor.status import ServiceStatus

DEADLINE_SECONDS = 60.0


def sleeper(name: str, **more: Any) -> Service:
    return Service(name, ["sleep", "600"], **more)


class Observed:
    """A supervisor and every status that it reported, with the name of the service."""

    def __init__(self, directory: Path, *services: Service) -> None:
        self.run_directory = directory / "run"
        self.status_file = self.run_directory / "supervisor.json"
        self.statuses: list[tuple[str, ServiceStatus]] = []
        self._new_status = threading.Condition()
        self.supervisor = Supervisor(
            services, status_file=self.status_file, log_dir=directory / "log", on_change=self._record
        )

    def _record(self, name: str, status: ServiceStatus) -> None:
        with self._new_status:
            self.statuses.append((name, status))
            self._new_status.notify_all()

    def wait_for(self, name: str, state: str, *, restarts: int = 0) -> ServiceStatus:
        """Wait for the first status of *name* in *state* with at least *restarts* restarts."""
        with self._new_status:
            assert self._new_status.wait_for(lambda: self._find(name, state, restarts), DEADLINE_SECONDS), (
                self.statuses
            )
            status = self._find(name, state, restarts)
            assert status is not None
            return status

    def _find(self, name: str, state: str, restarts: int) -> ServiceStatus | None:
        for service, status in self.statuses:
            if (service, status.state) == (name, state) and status.restarts >= restarts:
                return status
        return None

    def states(self, name: str) -> list[str]:
        return [status.state for service, status in self.statuses if service == name]


@contextmanager
def running(directory: Path, *services: Service) -> Iterator[Observed]:
    observed = Observed(directory, *services)
    with observed.supervisor.running(up_within_seconds=DEADLINE_SECONDS):
        yield observed


@contextmanager
def trying(directory: Path, service: Service) -> Iterator[Observed]:
    """Run a supervisor of a service that will not come up."""
    observed = Observed(directory, service)
    thread = threading.Thread(target=observed.supervisor.run)
    thread.start()
    try:
        yield observed
    finally:
        observed.supervisor.request_stop()
        thread.join()
