"""Keeps services running: starts them in order, restarts with back-off, stops in reverse, leaves nothing
behind.

Generic: it knows nothing of what the services are. One process tree::

    supervisor            one per directory of state (lock.py)
    |-- guard             one per service (guard.py): outlives nobody, lets nobody survive
    |   `-- service       in its own session, perhaps as another user
    |       `-- ...       whatever it starts; orphans fall to the guard
    `-- guard ...

``Supervisor.run`` is the loop; ``running`` has it in a thread for as long as a block lasts;
``in_foreground`` runs it until SIGINT or SIGTERM.
"""

from __future__ import annotations

from .lock import AlreadySupervised
from .loop import NotUp, Supervisor
from .service import Service
from .status import ServiceStatus, SupervisorStatus, read_status

__all__ = [
    "AlreadySupervised",
    "NotUp",
    "Service",
    "ServiceStatus",
    "Supervisor",
    "SupervisorStatus",
    "read_status",
]
