"""Episodes of failures: since when each series failed by which cause, for how long, and what ended it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from monitor.analysis.outcomes.episodes import FailureEpisode, JudgedRun, episodes
from monitor.depot.series.segment_diff import segment_changes
from monitor.models import Binding, FailureSignature, Run, Segment
from monitor.models.run import JUDGED, State
from monitor.runs.maintenance.windows import planned_windows

if TYPE_CHECKING:
    from monitor.analysis.outcomes.read import RunOutcomes

_NOT_CLASSIFIED = ""  # the cause of runs that are not classified yet
_MOST_SERIES = 50


@dataclass(frozen=True)
class SeriesEpisode:
    """An episode of *series*; *changes* are what changed between its last failed run and the next run."""

    series: str
    episode: FailureEpisode
    changes: Sequence[str]

    def seconds(self, now: datetime) -> float:
        """Return how long it lasted, until the next run or until *now*."""
        return ((self.episode.ended_at or now) - self.episode.began_at).total_seconds()


def episodes_of(
    outcomes: RunOutcomes, signature: FailureSignature | None, now: datetime
) -> list[SeriesEpisode]:
    """Return the episodes in the range of *outcomes*, newest first.

    Those by *signature*, or by any cause (None), of the fifty series with most such failures. An episode that
    began before the range begins with its first run in it.
    """
    series, since = _series(outcomes, signature), outcomes.range.start
    rows = Run.objects.filter(
        series__in=series, slot__gte=since, slot__lt=outcomes.range.end, state__in=JUDGED
    ).order_by("series", "slot")
    columns = rows.values_list("series", "series__name", "slot", "state", "signature__name")
    changes = _changes(series, since, now) if series else {}
    listed: list[SeriesEpisode] = []
    for (key, name), group in groupby(columns.iterator(), key=lambda row: (row[0], row[1])):
        judged = (JudgedRun(slot, _cause(state, cause)) for _, _, slot, state, cause in group)
        listed += [
            SeriesEpisode(name, episode, list(_between(changes.get(key, ()), episode)))
            for episode in episodes(judged)
            if signature is None or episode.cause == signature.name
        ]
    return sorted(listed, key=lambda each: (each.episode.latest_at, each.series), reverse=True)


def _series(outcomes: RunOutcomes, signature: FailureSignature | None) -> list[int]:
    """Return the keys of the series with most failures by *signature*."""
    failed = outcomes.failed_unnamed
    own = failed if signature is None else failed[failed["signature"] == signature.pk]
    series, runs = np.unique(own["series"], return_counts=True)
    most: list[int] = series[np.lexsort((series, -runs))][:_MOST_SERIES].tolist()
    return most


def _cause(state: str, signature: str | None) -> str | None:
    return None if state == State.PASSED else signature or _NOT_CLASSIFIED


def _between(changes: Collection[tuple[datetime, str]], episode: FailureEpisode) -> Iterator[str]:
    if episode.ended_at is not None:
        yield from (what for at, what in changes if episode.latest_at < at <= episode.ended_at)


def _changes(
    series: Collection[int], since: datetime, now: datetime
) -> Mapping[int, list[tuple[datetime, str]]]:
    """Return by series the recorded changes, with their times: new segments, and ends of maintenance."""
    changes: dict[int, list[tuple[datetime, str]]] = defaultdict(list)
    segments = Segment.objects.filter(series__in=series).order_by("series_id", "began_at")
    for key, group in groupby(segments, key=lambda segment: segment.series_id):
        for before, after in pairwise(group):
            changes[key] += [(after.began_at, str(change)) for change in segment_changes(before, after)]
    sites = defaultdict(set)
    for key, site in Binding.objects.filter(series__in=series).values_list(
        "series_id", "resource__site__name"
    ):
        sites[key].add(site)
    at_sites = {site for names in sites.values() for site in names}
    for window in planned_windows(since, now + timedelta(seconds=1), at_sites):
        for key in series:
            if window.covers(sites[key]):
                changes[key].append((window.ends_at, f"maintenance ended: {window.title}"))
    return changes
