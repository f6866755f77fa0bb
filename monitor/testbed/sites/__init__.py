"""The sites of the local grid: real SSH servers on loopback, slowed down and broken by simulated weather."""

from monitor.testbed.errors import TestbedError
from monitor.testbed.sites.description import GridDescription, load_description
from monitor.testbed.sites.grid import LocalGridOptions, open_sites, running_sites
from monitor.testbed.sites.weather_sources import WeatherSource

__all__ = [
    "GridDescription",
    "LocalGridOptions",
    "TestbedError",
    "WeatherSource",
    "load_description",
    "open_sites",
    "running_sites",
]
