"""The events of a chart that the server draws: shaded ranges, and symbols at the top edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from django.utils.safestring import SafeString
from django.utils.text import slugify

from monitor.web.charts import plot
from monitor.web.charts.annotations import AnnotationKind

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.web.charts.annotations import Annotation
    from monitor.web.charts.time_scale import TimeScale

GLYPHS: Mapping[AnnotationKind, str] = {
    AnnotationKind.HOLD: "■",
    AnnotationKind.MAINTENANCE: "◆",
    AnnotationKind.ALERT: "▼",
    AnnotationKind.SEGMENT: "○",
    AnnotationKind.LEVEL_SHIFT: "★",
}
_AT = 0.015  # of the height


def event_marks(
    events: Sequence[Annotation], x: TimeScale, first: float, last: float, until: datetime
) -> tuple[SafeString, SafeString]:
    """Return the ranges and the symbols of the *events* between *first* and *last*, seconds since 1970."""
    ranges, symbols = [], []
    for kind, glyph in GLYPHS.items():
        spans = [_span(event, until) for event in events if event.kind == kind]
        shown = [
            (max(start, first), min(end, last)) for start, end in spans if start <= last and end >= first
        ]
        if not shown:
            continue
        starts, ends = np.array(shown).T
        lasting = ends > starts
        name = f"event-range r-{slugify(kind)}"
        edges = x.positions(starts[lasting]), x.positions(ends[lasting])
        ranges.append(plot.path(name, plot.bars(*edges, np.zeros(lasting.sum()), np.ones(lasting.sum()))))
        if kind == AnnotationKind.LEVEL_SHIFT:
            ranges.append(plot.path("shift", plot.verticals(x.positions(starts))))
        symbols.append(
            plot.glyphs(f"e-{slugify(kind)}", glyph, x.positions(starts), np.full(len(starts), _AT))
        )
    return plot.joined(ranges), plot.joined(symbols)


def _span(event: Annotation, until: datetime) -> tuple[float, float]:
    end = until if event.is_open else event.end
    return event.start.timestamp(), (end or event.start).timestamp()
