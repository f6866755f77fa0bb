"""Batch systems: one file each, with a class ``Batch``. The folder is the registry."""

from __future__ import annotations

from reporters.base import BatchSystem
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[BatchSystem]](__name__, __path__, "Batch", noun="batch system")
names, load = _registry.names, _registry.load
