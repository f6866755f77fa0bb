"""Batch systems: one file each, with a class ``Batch``. The folder is the registry."""

from __future__ import annotations

from reporters import registry
from reporters.base import BatchSystem


def names() -> list[str]:
    """What there is, sorted."""
    return registry.names(__path__)


def load(kind: str) -> type[BatchSystem]:
    """The class of *kind*. Raises UnknownKind."""
    loaded: type[BatchSystem] = registry.load(__name__, __path__, "Batch", kind)
    return loaded
