"""The weather profiles. Each module of this folder is a profile, with a constant ``PROFILE``."""

from __future__ import annotations

from monitor.testbed.weather.figures import UnknownProfile
from monitor.testbed.weather.profile import Profile
from reporters.registry import PluginRegistry

_registry = PluginRegistry[Profile](
    __name__, __path__, "PROFILE", noun="weather profile", error=UnknownProfile
)
names, load = _registry.names, _registry.load
