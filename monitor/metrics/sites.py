"""Metrics of sites: their present states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.metrics import definitions as of

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from monitor.metrics.scope import ScrapeScope


def collect(scope: ScrapeScope) -> Iterator[Metric]:
    states, times = of.SITE_STATE.family(), of.SITE_SINCE.family()
    for name, current in scope.site_states().items():
        states.add_metric([name, current.state.value], 1)
        if current.since is not None:
            times.add_metric([name], current.since.timestamp())
    yield from (states, times)
