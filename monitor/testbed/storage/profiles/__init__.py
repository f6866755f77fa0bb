"""The profiles of emulated storage. Each module of this folder is one, with a constant ``PROFILE``."""

from __future__ import annotations

from monitor.testbed.errors import UnknownStorage
from monitor.testbed.storage.profile import StorageProfile
from reporters.registry import PluginRegistry

_registry = PluginRegistry[StorageProfile](
    __name__, __path__, "PROFILE", noun="storage profile", error=UnknownStorage
)


def names() -> list[str]:
    """Return the names of the profiles, sorted, as they are published: with hyphens."""
    return [name.replace("_", "-") for name in _registry.names()]


def load(name: str) -> StorageProfile:
    """Return the profile called *name*. Raises UnknownStorage if there is none."""
    if name not in names():
        raise UnknownStorage(f"there is no storage profile {name!r}; known are {', '.join(names())}")
    return _registry.load(name.replace("-", "_"))
