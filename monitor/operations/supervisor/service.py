"""Define services, the order in which they start, and the back-off of restarts."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MOST_START_SECONDS = 3600.0


@dataclass(frozen=True)
class Service:
    """A program to keep running.

    A service is *up* when ``ready`` returns True (called every 50 ms; it should take two seconds at most),
    or, without ``ready``, as soon as it runs. A service that is not up and has used no processor time for
    ``ready_seconds``, or is not up after ``MOST_START_SECONDS``, is killed and restarted: however slow the
    machine is, a service that computes is starting. A service that is up and hangs (``stalls.py``) is
    restarted, too: ``alive`` is the liveness check, called every few seconds (three seconds at most), and
    ``asleep_seconds`` exceeds the longest sleep of the main thread of a healthy service; None: neither is
    checked.

    The supervisor calls ``before`` before each start; an exception counts as a failed start. ``depends_on``
    names services that must be up before this one starts for the first time, and that stop after it. The
    service inherits the open sockets ``inherited``, with the numbers that their descriptors have in the
    supervisor.

    A service with ``once`` is up when it has ended with status 0; until then it is restarted.
    """

    name: str
    argv: Sequence[str]
    env: Mapping[str, str] | None = None  # the complete environment; None: the supervisor's
    directory: Path | None = None  # working directory; None: the supervisor's
    user: tuple[int, int] | None = None  # uid and gid to drop to; requires root
    before: Callable[[], None] | None = None
    ready: Callable[[], bool] | None = None
    ready_seconds: float = 60.0
    alive: Callable[[], bool] | None = None
    asleep_seconds: float | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    grace_seconds: float = 10.0
    depends_on: Sequence[str] = field(default=())
    once: bool = False
    inherited: Sequence[socket.socket] = field(default=())


def start_order(services: Sequence[Service]) -> list[Service]:
    """Sort *services* so that each follows its dependencies; otherwise the given order stays.

    Raises:
        ValueError: a name is used twice, a dependency is unknown, or dependencies form a cycle.
    """
    names = [service.name for service in services]
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate service names: {', '.join(names)}")
    for service in services:
        for name in set(service.depends_on) - set(names):
            raise ValueError(f"service {service.name} depends on {name}, which does not exist")
    ordered: list[Service] = []
    waiting = list(services)
    while waiting:
        done = {service.name for service in ordered}
        free = next((service for service in waiting if done.issuperset(service.depends_on)), None)
        if free is None:
            raise ValueError(f"services depend on each other: {', '.join(s.name for s in waiting)}")
        waiting.remove(free)
        ordered.append(free)
    return ordered


def backoff_seconds(failures: int) -> float:
    """Return the wait before a restart after *failures* (1 or more) in a row: 0.2 s, doubling up to 10 s."""
    return min(10.0, 0.2 * 2.0 ** min(failures - 1, 10))
