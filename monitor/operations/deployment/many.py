"""Take steps at several sites at once, and show the progress: a line for each site."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

from django.db import connections

from monitor.operations.deployment.site_host import DeploymentFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_AT_ONCE = 8


class Display(Protocol):
    """A text stream."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...


class Progress:
    """Shows the steps of each of *names*: on a terminal the latest one, in a line for each name, else all."""

    def __init__(self, stream: Display, names: Sequence[str]) -> None:
        self._stream = stream
        self._steps = dict.fromkeys(names, "")
        self._width = max(map(len, names), default=0)
        self._lock = threading.Lock()
        self._is_terminal = stream.isatty()
        self._has_drawn = False

    def say(self, name: str, step: str) -> None:
        """Show that *name* has reached *step*."""
        with self._lock:
            self._steps[name] = step.partition("\n")[0]
            lines = self._steps.items() if self._is_terminal else [(name, step)]
            up = f"\033[{len(self._steps)}A" if self._is_terminal and self._has_drawn else ""
            self._stream.write(up + "".join(self._line(shown, text) for shown, text in lines))
            self._has_drawn = True
            self._stream.flush()

    def _line(self, name: str, step: str) -> str:
        line = f"{name:<{self._width}}  {step}"
        if not self._is_terminal:
            return f"{line}\n"
        columns = shutil.get_terminal_size().columns
        return f"\r\033[K{line[: columns - 1]}\n"


def at_all(
    works: Mapping[str, Callable[[Callable[[str], None]], None]], stream: Display
) -> dict[str, DeploymentFault]:
    """Call all *works*, by name, each with a function that shows a step of it; return the failures by name.

    At most ``MOST_AT_ONCE`` run at once. A failure of one does not stop the others.
    """
    progress = Progress(stream, list(works))

    def run(name: str) -> DeploymentFault | None:
        try:
            works[name](lambda step: progress.say(name, step))
        except DeploymentFault as fault:
            progress.say(name, f"FAILED: {fault}")
            return fault
        finally:
            connections.close_all()  # of this thread
        return None

    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        faults = dict(zip(works, pool.map(run, works), strict=True))
    return {name: fault for name, fault in faults.items() if fault is not None}
