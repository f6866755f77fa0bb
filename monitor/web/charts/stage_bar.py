"""The predicted stages of a path as one bar, with the interval of the total below it."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.web.charts.stage_shades import DrawnStage

_WIDTH, _LEAST = 400, 1.0


def stage_bar(
    stages: Sequence[tuple[DrawnStage, float]], interval: tuple[float, float], most: float, label: str
) -> SafeString:
    """Draw the seconds of *stages* end to end, and the *interval* of their total; *most* seconds fill it."""
    scale, position, parts = _WIDTH / most if most > 0 else 0.0, 0.0, []
    for stage, seconds in stages:
        width = max(seconds * scale, 0.0)
        parts.append((stage.category, stage.shade, f"{position:.1f}", f"{max(width - 0.5, _LEAST):.1f}"))
        position += width
    lower, upper = (min(max(each * scale, 0.0), _WIDTH - _LEAST) for each in interval)
    return format_html(
        '<svg class="stage-bar" viewBox="0 0 {} 18" preserveAspectRatio="none" role="img" aria-label="{}">{}'
        '<path class="interval" d="M{} 12.5v4m0 -2H{}m0 -2v4"/></svg>',
        _WIDTH,
        label,
        format_html_join("", '<rect class="c-{}-{}" x="{}" width="{}" height="10"/>', parts),
        f"{lower:.1f}",
        f"{upper:.1f}",
    )
