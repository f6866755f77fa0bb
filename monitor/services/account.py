"""Keep what a run used at its sites: one row for each that it was bound to, also where it used nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monitor.models import Binding, Resource, Usage
from monitor.models.run import State
from reporters import usage

if TYPE_CHECKING:
    import uuid

    from monitor.models import Run
    from reporters import report as wire


@dataclass(frozen=True)
class Account:
    """What *run* of *series* (their keys) used, as its *report* says."""

    run: uuid.UUID
    series: int
    report: wire.Report


def account(accounts: Sequence[Account]) -> None:
    """Keep what reports say was used; nothing for runs that were skipped, for no site took part in them."""
    ran = [one for one in accounts if one.report.outcome != State.SKIPPED]
    bound = _bound(ran)
    used = {one.run: one.report.usage or {} for one in ran}
    site_of = _sites({name for run, names in bound.items() for name in names | used[run].keys()})
    _keep(
        row
        for one in sorted(ran, key=lambda one: one.run)
        for row in _rows(one, bound[one.run] | used[one.run].keys(), site_of)
    )


def _rows(one: Account, resources: Iterable[str], site_of: Mapping[str, int]) -> Iterator[Usage]:
    """What it used at each site, all resources there together."""
    used = defaultdict(usage.Usage, one.report.usage or {})
    together: dict[int, usage.Usage] = defaultdict(usage.Usage)
    for resource in resources:
        if resource in site_of:
            together[site_of[resource]] += used[resource]
    known = one.report.usage is not None  # an older reporter does not say
    for site, total in together.items():
        yield Usage(
            run_id=one.run,
            site_id=site,
            began_at=one.report.started_at,
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


def _bound(accounts: Sequence[Account]) -> dict[uuid.UUID, set[str]]:
    """By run, the names of its resources, as they were when it began."""
    untold = {one.series for one in accounts if one.report.bindings is None}
    now = _bound_now(untold) if untold else {}
    return {
        one.run: now.get(one.series, set())
        if one.report.bindings is None
        else {name for names in one.report.bindings.values() for name in names}
        for one in accounts
    }


def _bound_now(series: Iterable[int]) -> dict[int, set[str]]:
    bound: dict[int, set[str]] = defaultdict(set)
    named = Binding.objects.filter(series__in=series).order_by().values_list("series_id", "resource__name")
    for key, name in named:
        bound[key].add(name)
    return bound


def _sites(resources: Iterable[str]) -> dict[str, int]:
    """The key of the site of each of *resources* that is still known by its name."""
    return dict(Resource.objects.filter(name__in=resources).order_by().values_list("name", "site_id"))
