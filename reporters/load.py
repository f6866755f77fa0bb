"""The load guard: a run does not begin while one of its resources has enough to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from probes.base import ProbeError, ProbeFailed, in_parallel
from probes.grid import Shell

_READ_SECONDS = 10.0


class TooBusy(ProbeError):
    """A resource has more to do than the run may meet: outcome ``skipped``."""


def check(
    shell: Callable[[str], Shell],
    resources: Iterable[str],
    max_load1: float,
    log: Callable[[str, str], None],
) -> None:
    """Raise TooBusy if the load of one minute is above *max_load1* at any of *resources*.

    One whose load cannot be read keeps nobody from beginning, which is logged: that it cannot be reached is
    for the first stage to say.
    """

    def measured(resource: str) -> tuple[float | None, str]:
        try:
            load1 = read(shell(resource))
        except ProbeFailed as error:
            log(f"the load at {resource} is not known: {error}", "warning")
            return None, resource
        log(f"the load at {resource} is {load1:g}", "info")
        return load1, resource

    loads = in_parallel(measured, resources)
    busy = [
        f"{load1:g} at {resource}" for load1, resource in loads if load1 is not None and load1 > max_load1
    ]
    if busy:
        raise TooBusy(f"load: {', '.join(busy)}, at most {max_load1:g} allowed")


def read(shell: Shell) -> float:
    """The load of one minute behind *shell*. Raises ProbeFailed."""
    text = shell.check(["cat", "/proc/loadavg"], timeout_seconds=_READ_SECONDS, doing="read /proc/loadavg")
    return parse_loadavg(text)


def parse_loadavg(text: str) -> float:
    """The first number of Linux's ``/proc/loadavg``. Raises ProbeFailed for anything else."""
    words = text.split()
    try:
        load1, _load5, _load15 = (float(word) for word in words[:3])
    except ValueError:
        raise ProbeFailed(f"unreadable /proc/loadavg: {text[:80]!r}") from None
    return load1
