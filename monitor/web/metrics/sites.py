"""Metrics of sites: their present states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from monitor.web.metrics import definitions as of
from monitor.web.metrics.text_format import Family

if TYPE_CHECKING:
    from monitor.web.metrics.scope import ScrapeScope


def collect(scope: ScrapeScope) -> Iterator[Family]:
    states, times = Family(of.SITE_STATE), Family(of.SITE_SINCE)
    for name, current in scope.site_states().items():
        states.add(1, name, current.state.value)
        if current.since is not None:
            times.add(current.since.timestamp(), name)
    yield from (states, times)
