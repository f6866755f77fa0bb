"""Keep services running: start them in order, restart with back-off, stop in reverse, leave no process.

Generic: the package does not know what the services are. The supervisor and its descendants form a tree::

    supervisor            one per state directory (lock.py)
    |-- guard             one per service (guard.py): ends with the supervisor and kills its whole service
    |   `-- service       in its own session, perhaps as another user
    |       `-- ...       its descendants; orphans become children of the guard
    `-- guard ...

``Supervisor.run`` is the loop; ``running`` runs it in a thread while a block lasts; ``in_foreground`` runs it
until SIGINT or SIGTERM.
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
