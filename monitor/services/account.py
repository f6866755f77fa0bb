"""Keep what a run used at its sites: one row for each that it was bound to, also where it used nothing."""

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
    """Keep what *report* says was used; nothing for a run that was skipped, for no site took part in it."""
    if report.outcome == State.SKIPPED:
        return
    used = defaultdict(usage.Usage, report.usage or {})
    together: dict[int, usage.Usage] = defaultdict(usage.Usage)
    for resource, site in _sites(_bound(run, report) | used.keys()):
        together[site] += used[resource]
    known = report.usage is not None  # an older reporter does not say
    _keep(
        Usage(
            run=run,
            site_id=site,
            began_at=report.started_at,
            bytes=total.bytes_sent + total.bytes_received if known else None,
            cpu_seconds=total.cpu_seconds if known else None,
        )
        for site, total in together.items()
    )


def account_lost(runs: Iterable[Run]) -> None:
    """Keep that *runs* began, those that did, for what they used nobody knows; a late report corrects it."""
    _keep(
        Usage(run=run, site_id=site, began_at=run.started_at)
        for run in runs
        if run.started_at is not None
        for site in {binding.resource.site_id for binding in run.series.bindings.all()}
    )


def _keep(rows: Iterable[Usage]) -> None:
    Usage.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["run", "site"],
        update_fields=["began_at", "bytes", "cpu_seconds"],
    )


def _bound(run: Run, report: wire.Report) -> set[str]:
    """The names of its resources, as they were when it began."""
    if report.bindings is None:
        return set(run.series.bindings.values_list("resource__name", flat=True))
    return {name for names in report.bindings.values() for name in names}


def _sites(resources: Iterable[str]) -> Iterable[tuple[str, int]]:
    """(resource, key of its site) of those that are still known by their name."""
    return Resource.objects.filter(name__in=resources).order_by().values_list("name", "site_id")
