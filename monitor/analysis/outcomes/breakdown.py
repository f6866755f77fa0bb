"""Success rates, failed runs and causes by series, site, path or stage, worst first.

A failed run counts at the site of the resource at which it failed, on the paths of its series that begin or
end there, and in the stage that failed: elsewhere it proves nothing. A passed run counts at all sites, paths
and stages of its series.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import probes
from monitor.analysis.attribution.mesh_evidence import link_levels
from monitor.analysis.outcomes.counts import SuccessRates, is_excused
from monitor.analysis.outcomes.keyed_runs import KeyedRuns, NameOrder, by_names
from monitor.analysis.outcomes.repair_times import RepairTimes, repair_times_by_series
from monitor.depot.series.arrays_sql import series_of_probes, sites_of_series
from monitor.models import Binding, FailureSignature, Resource, Series, Site

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from monitor.analysis.outcomes.blocks import Numbers
    from monitor.analysis.outcomes.read import RunOutcomes
    from probes.base import Probe

    SeriesNames = QuerySet[Series, tuple[int, str]]

ARROW = " → "
MOST_ROWS = 100
_FEW = 2_000  # names that are loaded at once
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


def break_down(outcomes: RunOutcomes, kind: BreakdownKind) -> Breakdown:
    """Return the rows of *kind*; the number of queries does not depend on the number of rows."""
    if kind == BreakdownKind.SERIES:
        return _break_down_series(outcomes)
    count = {
        BreakdownKind.SITE: _by_site,
        BreakdownKind.PATH: _by_path,
        BreakdownKind.STAGE: _by_stage,
    }[kind]
    passed, at, names = count(outcomes)
    keyed = _keyed(passed, outcomes.failed[at.runs], at.keys)
    shown = keyed.worst(by_names(names), MOST_ROWS)
    return Breakdown(_rows(keyed, shown, {}), keyed.judged - len(shown))


def _break_down_series(outcomes: RunOutcomes) -> Breakdown:
    failed = outcomes.failed_unnamed
    keyed = _keyed(outcomes.passed_by_series, failed, outcomes.positions(failed["series"]))
    shown = keyed.worst(_series_by_name(outcomes.series), MOST_ROWS)
    keys = [key for key, _ in shown]
    times = repair_times_by_series(outcomes, outcomes.series[keys].tolist())
    rows = _rows(keyed, shown, dict(zip(keys, times.values(), strict=True)))
    return Breakdown(rows, keyed.judged - len(rows))


def _keyed(passed: Numbers, failed: NDArray[np.void], keys: Numbers) -> KeyedRuns:
    signatures = FailureSignature.objects.filter(counts_against_site=False)
    return KeyedRuns(passed, keys, failed["signature"], is_excused(failed, signatures))


def _rows(
    keyed: KeyedRuns, shown: Sequence[tuple[int, str]], times: Mapping[int, RepairTimes]
) -> list[BreakdownRow]:
    causes = keyed.causes([key for key, _ in shown])
    signatures = FailureSignature.objects.in_bulk({cause for cause, _ in causes.values() if cause})
    return [
        BreakdownRow(name, keyed.rates(key), signatures.get(cause), runs, times.get(key))
        for key, name in shown
        for cause, runs in [causes.get(key, (0, 0))]
    ]


class _FailedAt(NamedTuple):
    """Failed *runs*, as positions in ``RunOutcomes.failed``, and the number of the row of each."""

    runs: Numbers
    keys: Numbers


_Counted = tuple["Numbers", _FailedAt, Sequence[str]]  # passed runs by row, failed runs, names of the rows


def _series_by_name(series: Numbers) -> NameOrder:
    """Return the order of the names of *series*; no more names are loaded than needed."""

    def first(positions: Numbers, most: int) -> list[tuple[int, str]]:
        wanted = series[positions]
        names = Series.objects.order_by("sort_name").values_list("pk", "name")
        if len(wanted) <= _FEW:
            rows = list(names.filter(pk__in=wanted.tolist())[:most])
        else:
            rows = list(islice(_among(names, wanted), most))
        return [(int(np.searchsorted(series, key)), name) for key, name in rows]

    return first


def _among(names: SeriesNames, wanted: Numbers) -> Iterator[tuple[int, str]]:
    """Yield those of *names* (keys and names, in order) whose keys are *wanted*: many."""
    batch = list(names[:_FEW])
    while batch:
        is_wanted = np.isin([key for key, _ in batch], wanted)
        yield from (row for row, has in zip(batch, is_wanted.tolist(), strict=True) if has)
        batch = list(names.filter(name__gt=batch[-1][1])[:_FEW])


def _by_site(outcomes: RunOutcomes) -> _Counted:
    sites = dict(Site.objects.order_by().values_list("pk", "name"))
    number = {key: at for at, key in enumerate(sites)}
    positions, used = _sites_used(outcomes, number)
    passed = np.zeros(len(sites), np.int64)
    np.add.at(passed, used, outcomes.passed_by_series[positions])
    site_of = {name: number[site] for name, site in Resource.objects.values_list("name", "site")}
    failed_at = np.array([site_of.get(name, -1) for name in outcomes.names], np.int64)
    keys = failed_at[outcomes.failed["place"]]
    runs = np.flatnonzero(keys >= 0)
    return passed, _FailedAt(runs, keys[runs]), list(sites.values())


def _sites_used(outcomes: RunOutcomes, number: Mapping[int, int]) -> tuple[Numbers, Numbers]:
    """Return positions of series, and the number of a site that each uses; each pair once."""
    series, sites = sites_of_series()
    table = np.zeros(max(number, default=0) + 1, np.int64)
    table[list(number)] = list(number.values())
    positions = outcomes.positions(series)
    positions, sites = positions[positions >= 0], table[sites[positions >= 0]]
    has_one = np.bincount(positions, minlength=len(outcomes.series))[positions] == 1
    pairs = np.unique(positions[~has_one] * len(number) + sites[~has_one])  # few: sorting takes long
    several = np.divmod(pairs, max(len(number), 1))
    return (
        np.concatenate([positions[has_one], several[0]]),
        np.concatenate([sites[has_one], several[1]]),
    )


def _by_path(outcomes: RunOutcomes) -> _Counted:
    """Count by path; only series that use several sites have paths."""
    sites = Site.objects.order_by().values_list("pk", flat=True)
    positions, _ = _sites_used(outcomes, {key: at for at, key in enumerate(sites)})
    several = np.flatnonzero(np.bincount(positions) > 1)
    keys = outcomes.series[several].tolist()
    bound = _bound_sites(keys)
    numbers: dict[str, int] = {}
    own = {
        position: [numbers.setdefault(path, len(numbers)) for path in sorted(paths(bound.get(key, {})))]
        for position, key in zip(several.tolist(), keys, strict=True)
    }
    passed = np.zeros(len(numbers), np.int64)
    for position, numbers_of in own.items():
        passed[numbers_of] += outcomes.passed_by_series[position]
    return passed, _failed_on(outcomes, own, list(numbers)), list(numbers)


def _failed_on(outcomes: RunOutcomes, own: Mapping[int, Sequence[int]], names: Sequence[str]) -> _FailedAt:
    """Return each failed run once for each path of its series that begins or ends where it failed.

    By position of a series, *own* has the numbers of its paths, *names* the names of all.
    """
    ends = [set(name.split(ARROW)) for name in names]
    site_of = dict(Resource.objects.values_list("name", "site__name"))
    series = outcomes.positions(outcomes.failed["series"])
    runs = np.flatnonzero(np.isin(series, list(own)))
    places = np.stack([series[runs], outcomes.failed["place"][runs].astype(np.int64)], axis=1)
    different, which = np.unique(places, axis=0, return_inverse=True)
    on = [
        [path for path in own[position] if site_of.get(outcomes.names[place]) in ends[path]]
        for position, place in different.tolist()
    ]
    counts = np.array([len(each) for each in on], np.int64)[which.ravel()]
    keys = [path for each in which.ravel().tolist() for path in on[each]]
    return _FailedAt(np.repeat(runs, counts), np.array(keys, np.int64))


def _by_stage(outcomes: RunOutcomes) -> _Counted:
    numbers: dict[str, int] = {"": 0}
    passed: dict[int, int] = defaultdict(int)
    for probe, series in series_of_probes().items():
        positions = outcomes.positions(series)
        runs = int(outcomes.passed_by_series[positions[positions >= 0]].sum())
        for stage in _stages(probe):
            passed[numbers.setdefault(stage, len(numbers))] += runs
    stage_of = np.array([numbers.setdefault(name, len(numbers)) for name in outcomes.names], np.int64)
    keys = stage_of[outcomes.failed["stage"]]
    counted = np.array([passed[stage] for stage in range(len(numbers))], np.int64)
    if 0 not in keys:
        counted[0] = 0  # passed runs alone are no row without a name
    return counted, _FailedAt(np.arange(len(keys)), keys), list(numbers)


def paths(bound: BoundSites) -> set[str]:
    """Return the paths between different sites of a series, as ``source → destination``. Pure.

    ``link_levels`` says which site sends to which.
    """
    return {ARROW.join(link) for links in link_levels(list(bound.values())) for link in links}


def _stages(probe: str) -> Collection[str]:
    """Return the stages of *probe*, and the empty name; a probe that cannot be loaded has only this one."""
    installed = _installed(probe)
    return {"", *(stage.name for stage in installed.stages)} if installed else {""}


def _installed(probe: str) -> type[Probe] | None:
    try:
        return probes.load(probe)
    except Exception:  # noqa: BLE001  # missing or broken file: its roles and stages are not known
        return None


def _bound_sites(series: Collection[int]) -> Mapping[int, BoundSites]:
    """Return by key of the series the sites of each role, the roles in the order of the probe."""
    bindings = Binding.objects.filter(series__in=series).order_by("series", "role", "position")
    bound: dict[tuple[int, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for key, probe, role, site in bindings.values_list(
        "series", "series__probe", "role", "resource__site__name"
    ):
        bound[key, probe][role].append(site)
    return {key: _in_order(probe, roles) for (key, probe), roles in bound.items()}


def _in_order(probe: str, roles: BoundSites) -> BoundSites:
    installed = _installed(probe)
    return {role: roles[role] for role in installed.roles if role in roles} if installed else roles
