"""The scoreboard: how good forecasts were, where, for whom, and what probes added to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from monitor.charts.score_svg import Guide, Missed, lines, ratios
from monitor.forecasts import scoreboard as service
from monitor.forecasts import scoreboard_csv
from monitor.forecasts.scoreboard import SPANS, Choice, Last, Score
from monitor.forecasts.scoreboard_csv import PARTS
from monitor.pages.access import members_only
from monitor.units import humanised

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


@members_only
def page(request: HttpRequest) -> HttpResponse:
    """What is chosen is in the query string: the address is a permalink."""
    now = timezone.now()
    choice = _choice(request)
    board = service.scoreboard(request.user, choice, now)
    last = service.last_ones(request.user, choice)
    context = {
        "choice": choice,
        "spans": SPANS,
        "asked": _asked(choice),
        "query": urlencode(_asked(choice)),
        "names": service.names(request.user, choice.span, now),
        "board": board,
        "last": last,
        "predictors": service.predictors(request.user, choice),
        "consumers": service.consumers(request.user),
        "errors_drawn": _errors(board.times),
        "coverage_drawn": _coverage(board.times),
        "last_drawn": _truths(last),
        "newest": last[0].forecast.truth_time if last else None,
        "now": now,
    }
    return render(request, "pages/scoreboard.html", context)


@members_only
def table(request: HttpRequest, part: str) -> HttpResponse:
    """The values behind a part of the page, as CSV."""
    wanted = next((one for one in PARTS if one == part), None)
    if wanted is None:
        raise Http404(f"there is no table {part!r}")
    name, text = scoreboard_csv.table(request.user, _choice(request), wanted, timezone.now())
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _choice(request: HttpRequest) -> Choice:
    asked = {name: request.GET.get(name, "").replace("\x00", "") for name in ("site", "metric", "method")}
    span = next((one for one in SPANS if one.key == request.GET.get("range")), Choice.span)
    return Choice(span=span, **{name: value for name, value in asked.items() if value})


def _asked(choice: Choice) -> dict[str, str]:
    asked = {"site": choice.site, "metric": choice.metric, "method": choice.method, "range": choice.span.key}
    return {name: value for name, value in asked.items() if value}


def _errors(times: Sequence[Score]) -> SafeString | None:
    """How far off, by how far off the last value was."""
    values = [one.scaled_error for one in times]
    there = [value for value in values if value is not None]
    if not there:
        return None
    label = (
        f"Error against the last value, from {min(there):.2f} to {max(there):.2f}; the table says the same"
    )
    high = max(1.15, min(max(there), 3.0) * 1.05)
    return lines([("l-1", values)], [Guide(1.0, "the last value")], low=0.0, high=high, label=label)


def _coverage(times: Sequence[Score]) -> SafeString | None:
    columns = [
        ("l-1", [one.coverage_80 for one in times]),
        ("l-2", [one.coverage_90 for one in times]),
    ]
    there = [value for _, values in columns for value in values if value is not None]
    if not there:
        return None
    guides = [Guide(0.9, "90 % promised"), Guide(0.8, "80 % promised")]
    label = "Share of truths in the intervals of 80 and of 90 %; the table says the same"
    return lines(columns, guides, low=min(0.6, *there), high=1.0, label=label)


def _truths(last: Sequence[Last]) -> SafeString | None:
    """The newest forecasts, oldest first."""
    missed = [_missed(one) for one in reversed(last) if one.forecast.median > 0]
    if not missed:
        return None
    return ratios(missed, label="The newest truths by what was forecast; the CSV says the same in numbers")


def _missed(one: Last) -> Missed:
    said = one.forecast
    truth = said.truth or 0.0
    words = f"{one.series}: {humanised(truth, one.unit)}, forecast {humanised(said.median, one.unit)}"
    url = reverse("series", args=[one.series])
    return Missed(truth / said.median, said.lower / said.median, said.upper / said.median, url, words)
