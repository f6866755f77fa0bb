"""Turn runs into evidence about the parts of the grid that took part in them. Pure.

Data flow through the roles of a probe in the order in which the probe declares them: from every source to the
compute site, and from there to the destination; within a single role of several resources, round a ring. The
transfer stages follow the same order. A run that failed therefore says that the steps before the failed stage
passed, that one of the parts of the failed step is at fault, and nothing about the steps after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from monitor.analysis.attribution.culprits import GridPart, MeshResult, PartKind

_COMPUTE_ROLE = "compute"


class Link(NamedTuple):
    """A link over which a run copies data, by the names of its sites."""

    source: str
    destination: str


@dataclass(frozen=True)
class MeshSeries:
    """What the runs of a series exercise.

    Attributes:
        reporter: the name of the reporter that runs it.
        stages: the names and categories of the stages, in order.
        roles: the sites of each role, in the order in which the probe declares the roles.
        compute: the site that computes; empty if none does, or several do.
    """

    reporter: str
    stages: Sequence[tuple[str, str]]
    roles: Sequence[Sequence[str]]
    compute: str

    @property
    def sites(self) -> set[str]:
        return {site for sites in self.roles for site in sites}

    def links_by_stage(self) -> dict[str, list[Link]]:
        """Return the links that each transfer stage uses."""
        levels = link_levels(self.roles)
        transfers = [name for name, category in self.stages if category == "transfer"]
        if len(transfers) == len(levels):
            return dict(zip(transfers, levels, strict=True))
        every = [link for links in levels for link in links]
        return dict.fromkeys(transfers, every)


def mesh_series(
    reporter: str, stages: Sequence[tuple[str, str]], sites_by_role: Mapping[str, Sequence[str]]
) -> MeshSeries:
    """Return the series whose *sites_by_role* are in the order in which its probe declares the roles."""
    sites = {site for of_role in sites_by_role.values() for site in of_role}
    computing = set(sites_by_role.get(_COMPUTE_ROLE, sites))
    has_compute = any(category in ("compute", "queue") for _, category in stages)
    compute = computing.pop() if has_compute and len(computing) == 1 else ""
    return MeshSeries(reporter, stages, list(sites_by_role.values()), compute)


@dataclass(frozen=True)
class MeshRun:
    """A run that passed (*stage* is empty), or failed in *stage* at *site* (empty: not known)."""

    run: str
    stage: str = ""
    site: str = ""
    has_passed: bool = True


def mesh_results(runs: Iterable[tuple[MeshSeries, MeshRun]]) -> list[MeshResult]:
    """Return the results of every step of *runs* that was reached.

    A site that has several roles in this evidence is a part of its own: it may be at fault in all of them.
    The failure of a set-up stage at a site, such as a login that is refused, is evidence against this part,
    or against the site's only role.
    """
    pairs = list(runs)
    roles = _roles_by_site({id(series): series for series, _ in pairs}.values())
    return [result for series, run in pairs for result in _steps(series, run, roles)]


def _steps(series: MeshSeries, run: MeshRun, roles: Mapping[str, set[GridPart]]) -> Iterator[MeshResult]:
    if not run.has_passed and run.stage not in dict(series.stages):
        return  # a stage of another version of the probe
    links = series.links_by_stage()
    reporter = GridPart(PartKind.REPORTER, series.reporter)
    for stage, category in series.stages:
        is_failed = not run.has_passed and stage == run.stage
        candidates = [_link_parts(link, roles) for link in links.get(stage, ())]
        if category in ("compute", "queue") and series.compute:
            candidates = [{GridPart(PartKind.COMPUTE, series.compute)} | _whole(series.compute, roles)]
        if is_failed:
            parts = _failed_parts(series, run, candidates, roles)
            yield MeshResult(run.run, has_passed=False, parts=frozenset(parts | {reporter}))
            return
        for each in candidates:
            yield MeshResult(run.run, has_passed=True, parts=frozenset(each | {reporter}))


def _failed_parts(
    series: MeshSeries, run: MeshRun, candidates: Sequence[set[GridPart]], roles: Mapping[str, set[GridPart]]
) -> set[GridPart]:
    """Return the parts of which one is at fault; of several links, those that touch the site that failed."""
    if candidates:
        touching = [parts for parts in candidates if _concerns(parts, run.site)]
        return set().union(*(touching or candidates))
    sites = [run.site] if run.site in series.sites else sorted(series.sites)
    return set().union(*(_whole(site, roles) or roles.get(site, set()) for site in sites))


def _link_parts(link: Link, roles: Mapping[str, set[GridPart]]) -> set[GridPart]:
    parts = {
        GridPart(PartKind.SOURCE, link.source),
        GridPart(PartKind.DESTINATION, link.destination),
        GridPart(PartKind.EDGE, f"{link.source}>{link.destination}"),
    }
    return parts | _whole(link.source, roles) | _whole(link.destination, roles)


def _whole(site: str, roles: Mapping[str, set[GridPart]]) -> set[GridPart]:
    """Return the site as a part of its own, if it has more than one role, or none; else nothing."""
    return set() if len(roles.get(site, ())) == 1 else {GridPart(PartKind.SITE, site)}


def _concerns(parts: Iterable[GridPart], site: str) -> bool:
    return any(part.kind in (PartKind.SOURCE, PartKind.DESTINATION) and part.name == site for part in parts)


def _roles_by_site(every: Iterable[MeshSeries]) -> dict[str, set[GridPart]]:
    roles: dict[str, set[GridPart]] = defaultdict(set)
    for series in every:
        for links in series.links_by_stage().values():
            for link in links:
                roles[link.source].add(GridPart(PartKind.SOURCE, link.source))
                roles[link.destination].add(GridPart(PartKind.DESTINATION, link.destination))
        if series.compute:
            roles[series.compute].add(GridPart(PartKind.COMPUTE, series.compute))
    return roles


def link_levels(roles: Sequence[Sequence[str]]) -> list[list[Link]]:
    """Return the links between neighbouring roles, or round the only role; none within a site."""
    if len(roles) == 1:
        ring = roles[0]
        ends = zip(ring, [*ring[1:], *ring[:1]], strict=True) if len(ring) > 1 else ()
        return [[Link(*pair) for pair in ends if pair[0] != pair[1]]]
    return [
        [Link(source, target) for source in sources for target in targets if source != target]
        for sources, targets in pairwise(roles)
    ]
