"""Ways to run programs at a site: one file each, with a class ``Shell``. The folder is the registry."""

from __future__ import annotations

from reporters.base import ResourceShell
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[ResourceShell]](__name__, __path__, "Shell", noun="shell")
names, load = _registry.names, _registry.load
