"""Storage areas: health, what each is good for, which parameter matters, and how many streams it bears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import path, reverse
from django.utils import timezone

from monitor.analysis.performance.sweep_csv import sweep_csv
from monitor.analysis.performance.sweeps import newest_to_analyse, stored_sweeps
from monitor.analysis.storage.areas import SeriesVerdict, StorageArea, series_verdicts, storage_areas
from monitor.analysis.storage.uses import USES
from monitor.models import Series
from monitor.web.api.http.few_at_once import few_at_once
from monitor.web.pages.http.access import members_only, wants_part
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.updates import digest_of, is_current, live

SHOWN_EFFECTS = 12
SHOWN_LEVELS = 8
DIFFERENT = 0.05  # p value
# Figures of merit that are compared side by side, with their headings.
MERITS = {
    "price_per_gb": "Price per GB",
    "read_mb_per_second_per_price": "MB/s per price",
    "read_iops_per_price": "IOPS per price",
    "read_mb_per_second_per_watt": "MB/s per watt",
    "read_iops_per_watt": "IOPS per watt",
    "lifetime_years": "Lifetime in years",
}


@members_only
@live
def areas_page(request: HttpRequest) -> HttpResponse:
    areas = compute(request, "storage", lambda: storage_areas(request.user)) or []
    digest = digest_of([(area.resource.name, area.newest, area.storage) for area in areas])
    if is_current(request, digest):
        return HttpResponse(status=204)
    measured = [use for use in USES if any(use.name in area.by_use for area in areas)]
    context = {
        "rows": [(area, [(use, area.by_use.get(use.name)) for use in measured]) for area in areas],
        "uses": measured,
        "merits": compute(
            request, "merit", lambda: [(area, _merits(area)) for area in areas if area.figures]
        ),
        "merit_titles": list(MERITS.values()),
        "digest": digest,
        "now": timezone.now(),
    }
    return render(request, "parts/storage.html" if wants_part(request) else "pages/storage.html", context)


@members_only
@live
def area_page(request: HttpRequest, name: str) -> HttpResponse:
    areas = storage_areas(request.user)
    area = next((area for area in areas if area.resource.name == name), None)
    if area is None:
        raise Http404(f"there is no storage area {name} that you may see")
    verdicts = compute(request, "sweeps", lambda: series_verdicts(request.user, area.resource)) or []
    digest = digest_of([area.newest, area.storage, [(each.series, each.computed_at) for each in verdicts]])
    if is_current(request, digest):
        return HttpResponse(status=204)
    context = {
        "area": area,
        "sweeps": compute(
            request, "sweeps", lambda: [_sweep(each) for each in verdicts if "sweep" in each.content]
        ),
        "others": len(areas) - 1,
        "crumbs": [("Storage", reverse("storage"))],
        "digest": digest,
        "now": timezone.now(),
    }
    template = "parts/storage_area.html" if wants_part(request) else "pages/storage_area.html"
    return render(request, template, context)


@members_only
@few_at_once
def sweep_file(request: HttpRequest, name: str) -> HttpResponse:
    """Download the newest sweep of a series that can be analysed, as ``manage.py sweep`` writes it."""
    series = get_object_or_404(Series.objects.visible_to(request.user), name=name)
    sweeps = stored_sweeps(series)
    if not sweeps:
        raise Http404(f"{name} has no sweep")
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    text = sweep_csv(newest_to_analyse(sweeps))
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


def _merits(area: StorageArea) -> list[tuple[str, float | None]]:
    values = {figure.name: figure.value for figure in area.figures}
    return [(title, values.get(name)) for name, title in MERITS.items()]


def _sweep(verdict: SeriesVerdict) -> dict[str, Any]:
    """Return what the page shows of a sweep: its state, its effects or its settings, first the largest."""
    content = verdict.content
    effects: Mapping[str, Any] = content.get("effects") or {}
    claimed = [term for term in effects.get("terms", ()) if term["is_claimed"]]
    claimed.sort(key=lambda term: -float(term["size"]))
    streams: Mapping[str, Any] = content.get("streams") or {}
    return {
        "verdict": verdict,
        "state": content["sweep"],
        "of": content.get("of"),
        "refusal": content.get("refusal"),
        "effects": effects,
        "terms": [_term(term) for term in claimed[:SHOWN_EFFECTS]],
        "left_out": max(len(claimed) - SHOWN_EFFECTS, 0),
        "unclaimed": [
            " x ".join(term["term"]) for term in effects.get("terms", ()) if not term["is_claimed"]
        ],
        "first_pass": _first_pass(effects.get("first_pass") or streams.get("first_pass")),
        "streams": streams,
        "gain": _gain(streams["gain"]) if streams else None,
        "settings": [
            {**setting, "behind": setting["slower"] - 1.0} for setting in streams.get("settings", ())
        ],
    }


def _gain(gain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the best limit saves; if it takes more time than no limit, how much more."""
    readers, writers = gain["streams"]
    is_slower = gain["saved"] < 0.0
    share, low, high = gain["saved"], gain["low"], gain["high"]
    if is_slower:
        share, low, high = -share, -high, -low
    return {
        "readers": readers,
        "writers": writers,
        "is_slower": is_slower,
        "share": share,
        "low": low,
        "high": high,
    }


def _first_pass(effect: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if effect is None:
        return None
    changes = {key: float(effect[key]) - 1.0 for key in ("ratio", "low", "high")}
    return {**changes, "differs": effect["p_value"] <= DIFFERENT}


def _term(term: Mapping[str, Any]) -> dict[str, Any]:
    levels: Sequence[Mapping[str, Any]] = term["levels"]
    strongest = sorted(levels, key=lambda level: -abs(float(level["ratio"]) - 1.0))[:SHOWN_LEVELS]
    return {
        "name": " x ".join(term["term"]),
        "size": float(term["size"]) - 1.0,
        "levels": [
            {
                "name": ", ".join(level["levels"]),
                **{key: float(level[key]) - 1.0 for key in ("ratio", "low", "high")},
                "is_best": level["levels"][0] in term["best"],
            }
            for level in levels
            if level in strongest
        ],
    }


entries = [NavigationEntry("Sites", "Storage", "storage", pages=("storage-area",))]
urlpatterns = [
    path("storage/", areas_page, name="storage"),
    path("storage/<slug:name>/", area_page, name="storage-area"),
    path("series/<slug:name>/sweep.csv", sweep_file, name="sweep-file"),
]
