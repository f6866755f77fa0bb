"""The load guard: skip a run if one of its resources is busy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from probes.base import ProbeError, ProbeFailed, in_parallel
from probes.grid import Shell

_READ_SECONDS = 10.0


class TooBusy(ProbeError):
    """The load of a resource is above the limit of the run, so the outcome of the run is ``skipped``."""


def check(
    shell: Callable[[str], Shell],
    resources: Iterable[str],
    max_load1: float,
    log: Callable[[str, str], None],
) -> None:
    """Raise TooBusy if the one-minute load average of a resource is above *max_load1*.

    If the load of a resource cannot be read, a warning is logged and the run continues: if the resource is
    unreachable, the first stage of the run reports this failure.
    """

    def load_of(resource: str) -> tuple[float | None, str]:
        try:
            load1 = read(shell(resource))
        except ProbeFailed as error:
            log(f"the load at {resource} is not known: {error}", "warning")
            return None, resource
        log(f"the load at {resource} is {load1:g}", "info")
        return load1, resource

    loads = in_parallel(load_of, resources)
    busy = [
        f"{load1:g} at {resource}" for load1, resource in loads if load1 is not None and load1 > max_load1
    ]
    if busy:
        raise TooBusy(f"load: {', '.join(busy)}, at most {max_load1:g} allowed")


def read(shell: Shell) -> float:
    """Return the one-minute load average of the resource behind *shell*.

    Raises:
        ProbeFailed: the load cannot be read.
    """
    text = shell.check(["cat", "/proc/loadavg"], timeout_seconds=_READ_SECONDS, doing="read /proc/loadavg")
    return parse_loadavg(text)


def parse_loadavg(text: str) -> float:
    """Parse the first number of Linux's ``/proc/loadavg``.

    Raises:
        ProbeFailed: *text* does not begin with three numbers.
    """
    words = text.split()
    try:
        load1, _load5, _load15 = (float(word) for word in words[:3])
    except ValueError:
        raise ProbeFailed(f"unreadable /proc/loadavg: {text[:80]!r}") from None
    return load1
