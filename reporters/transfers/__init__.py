"""Ways to copy files between sites: one file each, with a class ``Transfer``. The folder is the registry."""

from __future__ import annotations

from reporters import registry
from reporters.base import FileTransfer


def names() -> list[str]:
    """What there is, sorted."""
    return registry.names(__path__)


def load(kind: str) -> type[FileTransfer]:
    """The class of *kind*. Raises UnknownKind."""
    loaded: type[FileTransfer] = registry.load(__name__, __path__, "Transfer", kind)
    return loaded
