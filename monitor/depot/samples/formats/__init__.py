"""Export formats of the values of a series. Each module of this folder is a format: a class ``Export``."""

from __future__ import annotations

from monitor.depot.samples.formats.base import Export, UnknownFormat
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[Export]](
    __name__, __path__, "Export", noun="form", error=UnknownFormat, shared={"base"}
)
names, load = _registry.names, _registry.load
