"""What the supervisor is told about a service, and what it says about one."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Service:
    """One program that is to run until it is told to stop.

    A service is *up* when ``ready`` returns True (asked every few hundredths of a second; it should not
    take longer than a second or two), or, without it, as soon as it runs. One that is not up
    ``ready_seconds`` after its start is killed and started again. ``before`` runs in the supervisor before
    each start; what it raises counts as a failed start. ``depends_on`` names services that must be up
    before the first start, and that stop after it.

    A ``once`` service is up when it has ended with status 0, and is started again until it has.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None  # the whole environment; None: the supervisor's own
    directory: Path | None = None  # to run in; None: the supervisor's own
    user: tuple[int, int] | None = None  # uid and gid to drop to; only root can
    before: Callable[[], None] | None = None
    ready: Callable[[], bool] | None = None
    ready_seconds: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0
    depends_on: Sequence[str] = field(default=())
    once: bool = False


def start_order(services: Sequence[Service]) -> list[Service]:
    """*services* with each after those that it depends on, otherwise as given.

    Raises:
        ValueError: a name is used twice, a dependency is unknown, or they wait for each other in a circle.
    """
    names = [service.name for service in services]
    if len(set(names)) < len(names):
        raise ValueError(f"two services of one name among {', '.join(names)}")
    for service in services:
        for name in set(service.depends_on) - set(names):
            raise ValueError(f"service {service.name} depends on {name}, which there is not")
    ordered: list[Service] = []
    waiting = list(services)
    while waiting:
        done = {service.name for service in ordered}
        free = next((service for service in waiting if done.issuperset(service.depends_on)), None)
        if free is None:
            raise ValueError(f"services that wait for each other: {', '.join(s.name for s in waiting)}")
        waiting.remove(free)
        ordered.append(free)
    return ordered


def backoff_seconds(failures: int) -> float:
    """How long to wait after *failures* (1 or more) in a row: 0.2 s, doubling up to 10 s."""
    return min(10.0, 0.2 * 2.0 ** min(failures - 1, 10))
