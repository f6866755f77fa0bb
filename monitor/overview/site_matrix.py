"""Very many series at a glance: for each site and group, how many of them work, and whose fault it is.

A group is a suite; where there is one suite only, a probe. The number of queries does not depend on how many
series or sites there are, and of each series there are only a few numbers in arrays.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import probes
from monitor.ledger.attribution import GRID_FAILURES, MONITOR_FAILURES
from monitor.ledger.maintenance import ShownWindow, open_for_user
from monitor.models import Hold, Resource, Run, Series, Site, Suite
from monitor.models.hold import HoldKind
from monitor.models.run import ENDED, State
from monitor.overview import column_arrays, latest
from monitor.overview.column_arrays import NEVER
from monitor.overview.latest import LETTERS
from monitor.overview.series_summary import Last
from monitor.overview.summary import LAST_HOUR, Glance, Trouble, in_a_row, work_at

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

SITES_A_PAGE = 50
MOST_TROUBLES = 8
WORST, BY_NAME = "worst", "name"
ORDERS = (WORST, BY_NAME)

# How a series stands at a site, the worst last: the number is its place in what is counted.
UNTOLD, PASSED, ELSEWHERE, OURS, SOMEWHERE, HERE = range(6)

_OURS = [state[0].encode() for state in MONITOR_FAILURES]
_BY_GRID = [state[0].encode() for state in GRID_FAILURES]
_CULPRIT = (
    "CASE failed_resource WHEN '' THEN 0 ELSE coalesce("
    "(SELECT site_id FROM monitor_resource WHERE name = failed_resource), 0) END"
)


@dataclass(frozen=True)
class Share:
    """The series of a group at one site: how many, and how they stand. *newest* is when one ended last."""

    counts: tuple[int, ...]
    newest: datetime | None

    @property
    def series(self) -> int:
        return sum(self.counts)

    @property
    def worst(self) -> int:
        return max(standing for standing, count in enumerate(self.counts) if count)

    @property
    def words(self) -> str:
        many = self.counts[self.worst]
        return {
            HERE: f"{many} failing here",
            SOMEWHERE: f"{many} failing somewhere",
            OURS: f"{many} our own",
            ELSEWHERE: f"{many} failing elsewhere",
            PASSED: "all passed" if many == self.series else f"{many} passed",
            UNTOLD: "no run yet",
        }[self.worst]


@dataclass(frozen=True)
class Row:
    """One site; a share is None where no series of the group uses it."""

    site: str
    title: str
    shares: Sequence[Share | None]
    failing: int
    held: str
    work: str


@dataclass(frozen=True)
class Tally(Glance):
    """The page's content, of many series: a *page* of its rows. *names* are of all sites."""

    groups: Sequence[str]
    are_suites: bool
    names: Sequence[str]
    rows: Sequence[Row]
    series: int
    sites: int
    page: int
    pages: int


@dataclass(frozen=True)
class _Seen:
    """What is known of every series; all arrays are in the same order. *group* is its place among groups."""

    series: NDArray[np.int64]
    group: NDArray[np.int64]
    state: NDArray[np.bytes_]
    ended_at: NDArray[np.int64]
    culprit: NDArray[np.int64]
    recent: NDArray[np.bytes_]

    @property
    def is_bad(self) -> NDArray[np.bool_]:
        return np.isin(self.state, [*_OURS, *_BY_GRID])


def tally(
    user: AbstractBaseUser | AnonymousUser,
    now: datetime,
    *,
    suite: str = "",
    order: str = WORST,
    page: int = 1,
) -> Tally:
    """What *user* may see at *now*: of one *suite* if it is named."""
    suites = Suite.objects.visible_to(user).filter(**{"name": suite} if suite else {}).order_by("name")
    groups = dict(suites.values_list("pk", "name"))
    are_suites = len(groups) > 1
    seen, names = _seen(now, groups, by_suite=are_suites)
    sites = list(Site.objects.order_by("name").values_list("pk", "name", "title"))
    counts, newest = _counted(seen, [pk for pk, _, _ in sites], len(names))
    used = np.flatnonzero(counts.sum(axis=(1, 2)))
    shown_groups = np.flatnonzero(counts.sum(axis=(0, 2)))
    ordered = used[_order(counts[used].sum(axis=1), order)]
    pages = max(1, -(-len(ordered) // SITES_A_PAGE))
    page = min(max(page, 1), pages)
    held = {one.name: one.reason for one in Hold.objects.at(now).filter(kind=HoldKind.SITE)}
    works = open_for_user(user, now)
    rows = [
        _row(sites[at], counts[at][shown_groups], newest[at][shown_groups], held, works)
        for at in ordered[(page - 1) * SITES_A_PAGE : page * SITES_A_PAGE]
    ]
    troubles = _troubles(seen, {pk: name for pk, name, _ in sites})
    outcomes = _outcomes(seen, now)
    told = (
        rows,
        troubles,
        outcomes,
        [(one.where, one.words) for one in works],
        len(seen.series),
        page,
        pages,
    )
    return Tally(
        troubles=troubles,
        troubled=int(seen.is_bad.sum()),
        works=works,
        outcomes=outcomes,
        digest=hashlib.blake2s(repr(told).encode(), digest_size=8).hexdigest(),
        groups=[names[at] for at in shown_groups],
        are_suites=are_suites,
        names=[sites[at][1] for at in used],
        rows=rows,
        series=len(seen.series),
        sites=len(ordered),
        page=page,
        pages=pages,
    )


def _seen(now: datetime, suites: Mapping[int, str], *, by_suite: bool) -> tuple[_Seen, list[str]]:
    """Every series of *suites* (names by key), and the names of the groups."""
    visible = Series.objects.filter(suite__in=list(suites))
    if by_suite:
        found = latest.keys(visible, {"group": ("integer", "suite_id")})
        found["group"] = latest.places(np.array(list(suites)), found["group"])
        names = list(suites.values())
    else:
        listed = sorted(probes.names())
        array = ", ".join(f"'{name}'" for name in listed)
        number = f"coalesce(array_position(ARRAY[{array}], probe::text) - 1, {len(listed)})"
        found, names = latest.keys(visible, {"group": ("integer", number)}), [*listed, "others"]
    wanted = {
        "state": ("letter", "state"),
        "ended_at": ("time", "coalesce(ended_at, slot, '-infinity')"),
        "culprit": ("integer", _CULPRIT),
        "recent": ("outcomes", _since(now - LAST_HOUR)),
    }
    return _Seen(**found, **latest.read(Series.objects.all(), found["series"], wanted)), names


def _since(start: datetime) -> str:
    """Those of the newest outcomes whose slot is after *start*, in SQL."""
    return f"substr(outcomes, width_bucket('{start.isoformat()}'::timestamptz, slots) + 1)"


def _counted(seen: _Seen, sites: Sequence[int], groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many series stand how, by site, group and standing; and when one of them ended last, by site and
    group. *sites* are keys."""
    bound = column_arrays.read(
        {"series": ("integer", "series_id"), "resource": ("integer", "resource_id")},
        "id", "FROM monitor_binding", [],
    )  # fmt: skip
    place_of = {pk: place for place, pk in enumerate(sites)}
    resources = np.array(sorted(Resource.objects.values_list("pk", "site_id")), dtype=np.int64).reshape(-1, 2)
    its_site = np.array([place_of[site] for site in resources[:, 1]], dtype=np.int64)
    row = latest.places(seen.series, bound["series"])
    site = latest.placed(its_site, latest.places(resources[:, 0], bound["resource"]), -1)
    is_ours = (row >= 0) & (site >= 0)
    pairs = np.sort(row[is_ours] * len(sites) + site[is_ours])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # a series may have two resources at a site
    row, site = np.divmod(pairs, max(len(sites), 1))
    at = site * groups + seen.group[row]
    standing = _standing(seen.state[row], seen.culprit[row], np.array(sites, dtype=np.int64)[site])
    shape = (len(sites), groups)
    counts = np.bincount(at * (HERE + 1) + standing, minlength=len(sites) * groups * (HERE + 1))
    newest = np.full(len(sites) * groups, NEVER)
    np.maximum.at(newest, at, seen.ended_at[row])
    return counts.reshape(*shape, HERE + 1), newest.reshape(shape)


def _standing(
    state: NDArray[np.bytes_], culprit: NDArray[np.int64], site: NDArray[np.int64]
) -> NDArray[np.int64]:
    """As ``blame.fault`` has it, of very many."""
    blamed = np.where(culprit == 0, SOMEWHERE, np.where(culprit == site, HERE, ELSEWHERE))
    return np.select(
        [state == b"p", np.isin(state, _BY_GRID), np.isin(state, _OURS)], [PASSED, blamed, OURS], UNTOLD
    )


def _order(counts: NDArray[np.int64], order: str) -> NDArray[np.int64]:
    """Of sites that are in the order of their names; *counts* are by site and standing."""
    if order == BY_NAME:
        return np.arange(len(counts))
    worse = [-counts[:, standing] for standing in (ELSEWHERE, OURS, SOMEWHERE, HERE)]
    return np.lexsort(worse)


def _row(
    site: tuple[int, str, str],
    counts: NDArray[np.int64],
    newest: NDArray[np.int64],
    held: dict[str, str],
    works: Sequence[ShownWindow],
) -> Row:
    _, name, title = site
    return Row(
        site=name,
        title=title,
        shares=[_share(*one) for one in zip(counts.tolist(), newest.tolist(), strict=True)],
        failing=int(counts[:, HERE].sum()),
        held=held.get(name, ""),
        work=work_at([name], works),
    )


def _share(counts: list[int], newest: int) -> Share | None:
    if not any(counts):
        return None
    ended = None if newest == NEVER else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=newest)
    return Share(tuple(counts), ended)


def _outcomes(seen: _Seen, now: datetime) -> dict[str, int]:
    """The runs of the last hour, by state."""
    is_full = (seen.recent != b" ").all(axis=1)  # there may be more than the newest
    letters = np.bincount(seen.recent[~is_full].view(np.uint8).ravel(), minlength=256)
    counted = Counter({state: int(letters[ord(letter)]) for letter, state in LETTERS.items()})
    often = Run.objects.filter(
        series__in=seen.series[is_full].tolist(), state__in=ENDED, slot__gt=now - LAST_HOUR
    )
    counted.update(State(state) for state in often.order_by().values_list("state", flat=True))
    return {str(state): count for state, count in sorted(counted.items()) if count}


def _troubles(seen: _Seen, sites: Mapping[int, str]) -> list[Trouble]:
    """The first of what does not work now: the grid's first, by site; then ours."""
    bad = np.flatnonzero(seen.is_bad)
    rank = {pk: number for number, pk in enumerate(sites)}
    place = np.array([rank.get(pk, len(rank)) for pk in seen.culprit[bad].tolist()], dtype=np.int64)
    first = bad[np.lexsort([seen.series[bad], place, np.isin(seen.state[bad], _OURS)])][:MOST_TROUBLES]
    named = dict(Series.objects.filter(pk__in=seen.series[first].tolist()).values_list("pk", "name"))
    newest = latest.recent(Series.objects.filter(pk__in=list(named)))
    runs = latest.last_runs(newest)
    found = []
    for key, culprit in zip(seen.series[first].tolist(), seen.culprit[first].tolist(), strict=True):
        last = runs.get(key)
        if last is not None:  # it is there still
            states = [state for state, _ in newest[key].trend]
            ours = last.state in MONITOR_FAILURES
            found.append(Trouble(named[key], sites.get(culprit), ours, Last.of(last), in_a_row(states)))
    return found
