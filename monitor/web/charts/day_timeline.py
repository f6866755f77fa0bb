"""The day of a resource as an SVG strip: runs by interval, exclusive runs, maintenance and pauses."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.runs.ledger.schedule import DAY, STEPS, ResourceDay, RunKind

_WIDTH, _HEIGHT, _BARS, _LANE = (
    1440,
    36,
    24,
    28,
)  # a unit is a minute; bars end at _BARS, exclusives begin at _LANE
_STEP = _WIDTH // STEPS
_LEAST = 3.0  # the height of a single run


def day_timeline(day: ResourceDay, start: datetime, at: datetime) -> SafeString:
    """Draw *day* from *start* on, with a line at the time *at*.

    Bars are as high as the interval has runs, relative to the fullest one. A failure has a tick above its
    bar; an exclusive run is a line below; maintenance and pauses have a frame.
    """
    frames = format_html_join(
        "",
        '<rect class="closed" x="{}" y="1" width="{}" height="{}"/>',
        (
            (f"{_x(each.starts_at, start):.1f}", f"{_width(each.starts_at, each.ends_at):.1f}", _HEIGHT - 2)
            for each in day.closures
        ),
    )
    bars = format_html_join("", '<rect class="k-{}" x="{}" y="{}" width="{}" height="{}"/>', _bars(day))
    lane = format_html_join(
        "",
        '<rect class="exclusive{}" x="{}" y="{}" width="{}" height="5"/>',
        (
            (
                " expected" if run.is_expected else "",
                f"{_x(run.starts_at, start):.1f}",
                _LANE,
                f"{_width(run.starts_at, run.ends_at):.1f}",
            )
            for run in day.exclusives
        ),
    )
    line = f"M{_x(at, start):.1f} 0V{_HEIGHT}"
    return format_html(
        '<svg class="day" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}{}{}'
        '<path class="at" d="{}"/></svg>',
        *(_WIDTH, _HEIGHT, _words(day), frames, bars, lane, line),
    )


def _bars(day: ResourceDay) -> Iterator[tuple[str, int, str, int, str]]:
    """Yield class, x, y, width and height of each rectangle."""
    most = max((sum(counts.values()) for counts in day.counts), default=0)
    for number, counts in enumerate(day.counts):
        bottom = float(_BARS)
        for kind in RunKind:
            if counts.get(kind):
                height = max((_BARS - 6) * counts[kind] / most, _LEAST)
                bottom -= height
                yield kind, number * _STEP, f"{max(bottom, 4):.1f}", _STEP - 2, f"{height:.1f}"
        if counts.get(RunKind.FAILED):
            yield "tick", number * _STEP, "0", _STEP - 2, "3"


def _words(day: ResourceDay) -> str:
    counts = ", ".join(f"{count:,} {kind}" for kind in RunKind if (count := day.total(kind)))
    parts = [counts or "no runs"]
    if day.exclusives:
        parts.append(f"{len(day.exclusives)} exclusive")
    return "; ".join([*parts, *(closure.text for closure in day.closures)])


def _x(time: datetime, start: datetime) -> float:
    return min(max((time - start) / DAY * _WIDTH, 0.0), _WIDTH - 1.0)


def _width(begin: datetime, end: datetime) -> float:
    return max((end - begin) / DAY * _WIDTH, 2.0)
