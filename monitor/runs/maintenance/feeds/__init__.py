"""Feeds of maintenance windows: one file per format, with a class ``Feed``. The folder is the registry."""

from __future__ import annotations

from monitor.runs.maintenance.feeds.base import MaintenanceFeed, UnknownFeed
from reporters.registry import PluginRegistry

_registry = PluginRegistry[type[MaintenanceFeed]](
    __name__,
    __path__,
    "Feed",
    noun="feed format",
    error=UnknownFeed,
    shared={"base", "content_lines", "recurrence", "xml_elements"},
)
names, load = _registry.names, _registry.load
