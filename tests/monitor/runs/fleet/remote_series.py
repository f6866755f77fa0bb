"""Series that a remote reporter runs."""

from __future__ import annotations

from typing import Any

from monitor.models import Reporter, Series
from monitor.operations.gridfile.define import SeriesDefinition, define
from reporters.config import ResourceConfig
from tests.monitor.runs.fleet.agents import remote_reporter

RESOURCES = [
    ResourceConfig("ncsa-login", "ncsa", "/scratch/ncsa/", address="192.0.2.7"),
    ResourceConfig("sdsc-login", "sdsc", "/scratch/sdsc"),
]


def disk(name: str = "disk-ncsa", **changes: Any) -> SeriesDefinition:
    """Return a series of the reporter ncsa, every hour."""
    values: dict[str, Any] = {"schedule": "0 * * * *", "reporter": "ncsa", **changes}
    bindings = values.pop("bindings", {"target": ["ncsa-login"]})
    return SeriesDefinition(name, values.pop("probe", "disk"), bindings, **values)


def remote_grid(*series: SeriesDefinition) -> Reporter:
    """Define *series* (default: an hourly one) of the reporter ncsa at the site ncsa; return the reporter."""
    reporter = Reporter.objects.filter(name="ncsa").first() or remote_reporter("ncsa")
    define(RESOURCES, series or [disk()])
    return reporter


def remote_series() -> Series:
    remote_grid()
    return Series.objects.get()
