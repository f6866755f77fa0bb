"""Ways to run programs at a site: one file each, with a class ``Shell``. The folder is the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reporters.registry import PluginRegistry

if TYPE_CHECKING:  # the agent of a site uses the names only, and keeps its memory small
    from reporters.base import ResourceShell

_registry: PluginRegistry[type[ResourceShell]] = PluginRegistry(__name__, __path__, "Shell", noun="shell")
names, load = _registry.names, _registry.load
