"""Keep what a run used at its sites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from monitor.models import Resource, Usage
from monitor.models.run import State
from reporters import usage

if TYPE_CHECKING:
    from monitor.models import Run
    from reporters import report as wire


def account(run: Run, report: wire.Report) -> None:
    """One row for each site that *run* was bound to, also where it used nothing: it took part in the run.

    None for a run that was skipped; what an older reporter does not say is not known.
    """
    if report.outcome == State.SKIPPED:
        return
    used = defaultdict(usage.Usage, report.usage or {})
    together: dict[int, usage.Usage] = defaultdict(usage.Usage)
    for resource, site in _sites(_bound(run, report) | used.keys()):
        together[site] += used[resource]
    known = report.usage is not None
    Usage.objects.bulk_create(
        [
            Usage(
                run=run,
                site_id=site,
                began_at=report.started_at,
                bytes=total.bytes_sent + total.bytes_received if known else None,
                cpu_seconds=total.cpu_seconds if known else None,
            )
            for site, total in together.items()
        ],
        ignore_conflicts=True,
    )


def _bound(run: Run, report: wire.Report) -> set[str]:
    """The names of its resources, as they were when it began."""
    if report.bindings is None:
        return set(run.series.bindings.values_list("resource__name", flat=True))
    return {name for names in report.bindings.values() for name in names}


def _sites(resources: Iterable[str]) -> Iterable[tuple[str, int]]:
    """(resource, key of its site) of those that are still known by their name."""
    return Resource.objects.filter(name__in=resources).order_by().values_list("name", "site_id")
