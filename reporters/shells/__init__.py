"""Ways to run programs at a site: one file each, with a class ``Shell``. The folder is the registry."""

from __future__ import annotations

from reporters import registry
from reporters.base import ResourceShell


def names() -> list[str]:
    """What there is, sorted."""
    return registry.names(__path__)


def load(kind: str) -> type[ResourceShell]:
    """The class of *kind*. Raises UnknownKind."""
    loaded: type[ResourceShell] = registry.load(__name__, __path__, "Shell", kind)
    return loaded
