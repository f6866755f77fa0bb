"""Success rates, failed runs and causes by series, site, path or stage, worst first.

A failed run counts at the site of the resource at which it failed, on the paths of its series that begin or
end there, and in the stage that failed: elsewhere it proves nothing. A passed run counts at all sites, paths
and stages of its series.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Case, CharField, Count, F, Value, When

import probes
from monitor.failures.counts import FailureRange, RunGroup, SuccessRates, judged_runs, success_rates
from monitor.failures.in_maintenance import failed_in_maintenance
from monitor.failures.mesh_evidence import link_levels
from monitor.failures.repair_times import RepairTimes, repair_times_by_series
from monitor.models import Binding, FailureSignature, Resource, Series
from monitor.models.natural_order import sort_name
from monitor.models.run import WITH_SIGNATURE, State

if TYPE_CHECKING:
    from monitor.models.run import RunQuerySet
    from probes.base import Probe

ARROW = " → "
MOST_ROWS = 100
Keys = Callable[[RunGroup], Collection[str]]
BoundSites = Mapping[str, Sequence[str]]  # by role, in the order of their positions


class BreakdownKind(StrEnum):
    SERIES = "series"
    SITE = "site"
    PATH = "path"
    STAGE = "stage"


@dataclass(frozen=True)
class BreakdownRow:
    """A series, site, path or stage.

    Attributes:
        name: empty for failed runs that name no stage.
        cause: the most frequent cause of its *cause_runs* failed runs; None if they are not classified.
        times: None except for a series.
    """

    name: str
    rates: SuccessRates
    cause: FailureSignature | None
    cause_runs: int
    times: RepairTimes | None = None


@dataclass(frozen=True)
class Breakdown:
    """The *rows* with the lowest adjusted success rates, at most a hundred, and how many *more* there are."""

    rows: Sequence[BreakdownRow]
    more: int


def break_down(runs: RunQuerySet, range_: FailureRange, now: datetime, kind: BreakdownKind) -> Breakdown:
    """Return the rows of *kind* for *runs* in *range_*, which ends *now*; at most seven queries."""
    judged = judged_runs(runs, range_, now)
    groups = _groups(judged, range_.begin(now), now, kind)
    signatures = FailureSignature.objects.in_bulk({group.signature for group in groups if group.signature})
    rows = rows_of(groups, _keys(kind, groups), signatures)
    shown = rows[:MOST_ROWS]
    if kind == BreakdownKind.SERIES:
        shown = _with_times(shown, judged)
    return Breakdown(shown, len(rows) - len(shown))


def rows_of(
    groups: Iterable[RunGroup], keys: Keys, signatures: Mapping[int, FailureSignature]
) -> list[BreakdownRow]:
    """Return a row for each of the *keys* of *groups*, the lowest adjusted success rate first. Pure."""
    by_key: dict[str, list[RunGroup]] = defaultdict(list)
    for group in groups:
        for key in keys(group):
            by_key[key].append(group)
    excused = {key: not signature.counts_against_site for key, signature in signatures.items()}
    rows = []
    for key, own in by_key.items():
        causes: Counter[int | None] = Counter()
        for group in own:
            if group.state != State.PASSED:
                causes[group.signature] += group.runs
        ((signature, cause_runs),) = causes.most_common(1) or [(None, 0)]
        cause = signatures[signature] if signature is not None else None
        rows.append(BreakdownRow(key, success_rates(own, excused), cause, cause_runs))
    return sorted((row for row in rows if row.name or row.rates.failed), key=_badness)


def paths(bound: BoundSites) -> set[str]:
    """Return the paths between different sites of a series, as ``source → destination``. Pure.

    ``link_levels`` says which site sends to which.
    """
    return {ARROW.join(link) for links in link_levels(list(bound.values())) for link in links}


def _badness(row: BreakdownRow) -> tuple[float, int, str]:
    rate = row.rates.adjusted
    return (2.0 if rate is None else rate, row.rates.excused - row.rates.failed, sort_name(row.name))


def _groups(judged: RunQuerySet, since: datetime, now: datetime, kind: BreakdownKind) -> list[RunGroup]:
    of, place = {
        BreakdownKind.SERIES: ("series__name", Value("")),
        BreakdownKind.SITE: ("series__name", F("failed_resource")),
        BreakdownKind.PATH: ("series__name", F("failed_resource")),
        BreakdownKind.STAGE: ("series__probe", F("stage")),
    }[kind]
    annotated = judged.annotate(
        of=F(of),
        place=Case(When(state__in=WITH_SIGNATURE, then=place), default=Value(""), output_field=CharField()),
        in_maintenance=failed_in_maintenance(since, now + timedelta.resolution),
    )
    rows = annotated.values_list("of", "place", "state", "signature", "in_maintenance")
    return [RunGroup(*row) for row in rows.annotate(runs=Count("*"))]


def _keys(kind: BreakdownKind, groups: Collection[RunGroup]) -> Keys:
    """Return the function that gives the keys of a group."""
    if kind == BreakdownKind.SERIES:
        return lambda group: (group.of,)
    if kind == BreakdownKind.STAGE:
        stages = {probe: _stages(probe) for probe in {group.of for group in groups}}
        return lambda group: stages[group.of] if group.state == State.PASSED else (group.place,)
    bound = _bound_sites({group.of for group in groups})
    site_of = dict(Resource.objects.values_list("name", "site__name"))
    if kind == BreakdownKind.SITE:
        return lambda group: _sites(group, bound.get(group.of, {}), site_of)
    by_series = {name: paths(roles) for name, roles in bound.items()}
    return lambda group: _paths(group, by_series.get(group.of, ()), site_of)


def _sites(group: RunGroup, bound: BoundSites, site_of: Mapping[str, str]) -> Collection[str]:
    if group.state == State.PASSED:
        return {site for sites in bound.values() for site in sites}
    return {site_of[group.place]} if group.place in site_of else ()


def _paths(group: RunGroup, own: Collection[str], site_of: Mapping[str, str]) -> Collection[str]:
    if group.state == State.PASSED:
        return own
    site = site_of.get(group.place)
    return [path for path in own if site in path.split(ARROW)]


def _stages(probe: str) -> Collection[str]:
    """Return the stages of *probe*, and the empty name; a probe that cannot be loaded has only this one."""
    installed = _installed(probe)
    return {"", *(stage.name for stage in installed.stages)} if installed else {""}


def _installed(probe: str) -> type[Probe] | None:
    try:
        return probes.load(probe)
    except Exception:  # noqa: BLE001  # missing or broken file: its roles and stages are not known
        return None


def _bound_sites(series: Collection[str]) -> Mapping[str, BoundSites]:
    """Return by series the sites of each role, the roles in the order of the probe."""
    bindings = Binding.objects.filter(series__name__in=series).order_by("series", "role", "position")
    bound: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, probe, role, site in bindings.values_list(
        "series__name", "series__probe", "role", "resource__site__name"
    ):
        bound[name, probe][role].append(site)
    return {name: _in_order(probe, roles) for (name, probe), roles in bound.items()}


def _in_order(probe: str, roles: BoundSites) -> BoundSites:
    installed = _installed(probe)
    return {role: roles[role] for role in installed.roles if role in roles} if installed else roles


def _with_times(rows: Iterable[BreakdownRow], judged: RunQuerySet) -> list[BreakdownRow]:
    own = list(rows)
    series = Series.objects.filter(name__in=[row.name for row in own])
    names = dict(series.values_list("name", "pk"))
    times = repair_times_by_series(judged.filter(series__in=list(names.values())))
    return [replace(row, times=times.get(names.get(row.name, 0))) for row in own]
