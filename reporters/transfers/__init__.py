"""Ways to copy files between sites: one file each, with a class ``Transfer``. The folder is the registry."""

from __future__ import annotations

from reporters.base import FileTransfer
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[FileTransfer]](__name__, __path__, "Transfer", noun="transfer")
names, load = _registry.names, _registry.load
