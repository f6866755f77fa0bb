"""Episodes: consecutive failures of a series by one cause."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from django.utils import timezone
from ninja import Query, Router, Schema

from monitor.analysis.outcomes.cause_episodes import SeriesEpisode, episodes_of
from monitor.analysis.outcomes.counts import outcomes_in
from monitor.models import FailureSignature
from monitor.web.api.failures import RangeKey, chosen_range
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, list_items
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["failures"])


class EpisodeOut(Schema):
    """Consecutive failed runs of a series by one cause; *signature* is null if they are not classified yet.

    *began_at* and *latest_at* are the slots of the first and the last of these runs, and *ended_at* that of
    the next run: it passed (*is_repaired*), or failed by another cause; null while the episode lasts.
    *seconds* last until then, or until now. *changes* were recorded between the last failed run and the next.
    """

    series: str
    signature: str | None
    began_at: datetime
    latest_at: datetime
    ended_at: datetime | None
    seconds: float
    run_count: int
    is_repaired: bool
    changes: list[str]


class EpisodeList(ListOut):
    episodes: list[EpisodeOut]


class EpisodeQuery(Page):
    series: NameFilter = ""
    site: NameFilter = ""
    signature: NameFilter = ""
    range: RangeKey = "7d"


@router.get(
    "/failures/episodes",
    response=EpisodeList,
    operation_id="list_failure_episodes",
    openapi_extra=declare(errors={404: ["unknown_signature"]}),
    summary="List episodes of failures, newest first",
)
def list_failure_episodes(request: HttpRequest, query: Query[EpisodeQuery]) -> HttpResponse:
    """Of the fifty series with most such failures. An episode that began before the range begins with its
    first run in it."""
    range_, now = chosen_range(query.range), timezone.now()
    outcomes = outcomes_in(range_, now, request.user, query.site, query.series)
    episodes = episodes_of(outcomes, _signature(query.signature), now)
    return list_items(
        query, episodes, EpisodeList, key=_newest_first, show=lambda episode: _out(episode, now)
    )


def _newest_first(listed: SeriesEpisode) -> tuple[float, str, float]:
    episode = listed.episode
    return -episode.latest_at.timestamp(), listed.series, episode.began_at.timestamp()


def _signature(name: str) -> FailureSignature | None:
    if not name:
        return None
    signature = FailureSignature.objects.filter(name=name).first()
    if signature is None:
        raise Refused(
            404, "unknown_signature", f"there is no signature {name!r}; /failures/signatures lists them"
        )
    return signature


def _out(listed: SeriesEpisode, now: datetime) -> EpisodeOut:
    episode = listed.episode
    return EpisodeOut(
        series=listed.series,
        signature=episode.cause or None,
        began_at=episode.began_at,
        latest_at=episode.latest_at,
        ended_at=episode.ended_at,
        seconds=listed.seconds(now),
        run_count=episode.runs,
        is_repaired=episode.is_repaired,
        changes=list(listed.changes),
    )
