"""Batch systems: one file each, with a class ``Batch``. The folder is the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reporters.registry import PluginRegistry

if TYPE_CHECKING:  # the agent of a site uses the names only, and keeps its memory small
    from reporters.base import BatchSystem

_registry: PluginRegistry[type[BatchSystem]] = PluginRegistry(
    __name__, __path__, "Batch", noun="batch system"
)
names, load = _registry.names, _registry.load
