"""Lines for the terminal about services that come up or die."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.operations.supervisor import ServiceStatus


@dataclass
class StatusLines:
    """Reports through *say* when a service comes up or dies, with the seconds since the start."""

    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    _states: dict[str, str] = field(default_factory=dict)

    def changed(self, name: str, status: ServiceStatus) -> None:
        """Report the new *status* of the service *name* if the service has come up or died."""
        if self._states.get(name) == status.state:
            return
        self._states[name] = status.state
        after = f"{time.monotonic() - self.began:5.1f} s"
        if status.state == "up":
            self.say(f"{after}  {name} is up" + (" again" if status.restarts else ""))
        elif status.state == "restarting":
            self.say(f"{after}  {name} died ({status.last_exit}) and is being restarted")
