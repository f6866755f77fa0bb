"""Keep what a run used at its sites: one row for each that it was bound to, also where it used nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from monitor.models import Resource, Usage
from monitor.models.run import State
from reporters import usage

if TYPE_CHECKING:
    import uuid

    from monitor.models import Run
    from reporters import report as wire


def account(reports: Mapping[uuid.UUID, wire.Report]) -> None:
    """Keep what *reports*, by run, say was used; nothing for runs that were skipped, for no site took part in
    them."""
    ran = {run: report for run, report in sorted(reports.items()) if report.outcome != State.SKIPPED}
    site_of = _sites({name for report in ran.values() for name in _resources(report)})
    _keep(row for run, report in ran.items() for row in _rows(run, report, site_of))


def _resources(report: wire.Report) -> set[str]:
    """The names of all that it was bound to, or used."""
    bound = {name for names in (report.bindings or {}).values() for name in names}
    return bound | (report.usage or {}).keys()


def _rows(run: uuid.UUID, report: wire.Report, site_of: Mapping[str, int]) -> Iterator[Usage]:
    """What it used at each site, all resources there together."""
    used = defaultdict(usage.Usage, report.usage or {})
    together: dict[int, usage.Usage] = defaultdict(usage.Usage)
    for resource in _resources(report):
        if resource in site_of:
            together[site_of[resource]] += used[resource]
    known = report.usage is not None  # an older reporter does not say
    for site, total in together.items():
        yield Usage(
            run_id=run,
            site_id=site,
            began_at=report.started_at,
            bytes=total.bytes_sent + total.bytes_received if known else None,
            cpu_seconds=total.cpu_seconds if known else None,
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


def _sites(resources: Iterable[str]) -> dict[str, int]:
    """The key of the site of each of *resources* that is still known by its name."""
    return dict(Resource.objects.filter(name__in=resources).order_by().values_list("name", "site_id"))
