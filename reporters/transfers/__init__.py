"""Ways to copy files between sites: one file each, with a class ``Transfer``. The folder is the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reporters.registry import PluginRegistry

if TYPE_CHECKING:  # the agent of a site uses the names only, and keeps its memory small
    from reporters.base import FileTransfer

_registry: PluginRegistry[type[FileTransfer]] = PluginRegistry(
    __name__, __path__, "Transfer", noun="transfer"
)
names, load = _registry.names, _registry.load
