"""The kinds of services that start the agent: a file each, with a class ``SiteService``, found by name."""

from __future__ import annotations

from reporters.registry import PluginRegistry
from reporters.remote.service import AgentService

_registry = PluginRegistry[type[AgentService]](__name__, __path__, "SiteService", noun="kind of service")
names, load = _registry.names, _registry.load


def by_preference() -> list[str]:
    """Return the names of all kinds, the preferred kind first."""
    return sorted(names(), key=lambda name: load(name).rank)
