"""The paths of a run's transfers as SVG: the ring of Circle, the fan-in of Gather. A table has the values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitor.core.units import seconds as seconds_text
from monitor.web.charts.run_transfers import RING, RunTransfer, RunTransfers

MOST_NODES = 12  # a larger ring cannot be labelled
_WIDTH, _RING_HEIGHT = 400, 300
_CENTRE, _RADIUS = (200.0, 150.0), 96.0
_LABEL_CHARACTERS = 12
_ROW, _MARGIN = 38, 24


def transfer_svg(transfers: RunTransfers, sites: Mapping[str, str]) -> SafeString:
    """Draw *transfers*; a resource is labelled with its site. Empty if there are too many to label."""
    if len(transfers.transfers) > MOST_NODES:
        return SafeString("")
    if transfers.shape == RING:
        return _svg(_RING_HEIGHT, f"Ring of {len(transfers.transfers)} transfers", _ring(transfers, sites))
    sources = len(transfers.transfers) - 1
    height = max(sources * _ROW, 2 * _ROW) + _MARGIN
    label = f"{sources} transfers to the compute resource, one from it"
    return _svg(height, label, _fan_in(transfers, sites, height))


def _svg(height: float, label: str, parts: Sequence[SafeString]) -> SafeString:
    head = format_html(
        '<svg class="paths" viewBox="0 0 {} {}" role="img" aria-label="{}">', _WIDTH, round(height), label
    )
    marker = SafeString(
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="4" markerHeight="4" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    return format_html("{}{}{}</svg>", head, marker, format_html_join("", "{}", ((part,) for part in parts)))


def _ring(transfers: RunTransfers, sites: Mapping[str, str]) -> list[SafeString]:
    count = len(transfers.transfers)
    step, gap = 2 * math.pi / count, 15 / _RADIUS
    parts = []
    for number, each in enumerate(transfers.transfers):
        angle = number * step - math.pi / 2
        (x, y), (to_x, to_y) = _at(angle + gap), _at(angle + step - gap - 0.02)
        large = int(step - 2 * gap > math.pi)
        path = f"M{x:.1f} {y:.1f}A{_RADIUS:g} {_RADIUS:g} 0 {large} 1 {to_x:.1f} {to_y:.1f}"
        parts.append(_link(path, each))
        parts.append(_text(*_at(angle + step / 2, 0.66), "middle", _time(each), "path-time"))
        parts += _node(*_at(angle), number + 1, each.source == transfers.failed_resource)
        name = _name(each.source, sites)
        label_x, label_y = _at(angle, 1.24)
        anchor = "middle" if abs(label_x - _CENTRE[0]) < 12 else "end" if label_x < _CENTRE[0] else "start"
        parts.append(_text(label_x, label_y, anchor, name, "path-name"))
    return parts


def _fan_in(transfers: RunTransfers, sites: Mapping[str, str], height: float) -> list[SafeString]:
    *inputs, result = transfers.transfers
    middle = height / 2
    failed = transfers.failed_resource
    top = middle - (len(inputs) - 1) * _ROW / 2
    parts = []
    for number, each in enumerate(inputs):
        y = top + number * _ROW
        parts.append(_link(f"M132 {y:.1f}C180 {y:.1f} 170 {middle:.1f} 208 {middle:.1f}", each))
        parts += _node(118, y, number + 1, each.source == failed)
        parts.append(_text(100, y - 7, "end", _name(each.source, sites), "path-name"))
        parts.append(_text(100, y + 9, "end", _time(each), "path-time"))
    parts.append(_link(f"M238 {middle:.1f}H296", result))
    parts += _node(224, middle, len(inputs) + 1, result.source == failed)
    parts.append(_text(224, middle + 28, "middle", _name(result.source, sites), "path-name"))
    parts += _node(310, middle, len(inputs) + 2, result.target == failed)
    parts.append(_text(328, middle - 7, "start", _name(result.target, sites), "path-name"))
    parts.append(_text(328, middle + 9, "start", _time(result), "path-time"))
    return parts


def _at(angle: float, share: float = 1.0) -> tuple[float, float]:
    return (
        _CENTRE[0] + _RADIUS * share * math.cos(angle),
        _CENTRE[1] + _RADIUS * share * math.sin(angle),
    )


def _link(path: str, transfer: RunTransfer) -> SafeString:
    kind = "path" if transfer.seconds is not None else "path unmeasured"
    return format_html('<path class="{}" d="{}" marker-end="url(#arrow)"/>', kind, path)


def _node(x: float, y: float, number: int, has_failed: bool) -> list[SafeString]:
    kind = "node failed" if has_failed else "node"
    return [
        format_html('<circle class="{}" cx="{}" cy="{}" r="12"/>', kind, f"{x:.1f}", f"{y:.1f}"),
        _text(x, y, "middle", "✖" if has_failed else str(number), "path-number"),
    ]


def _text(x: float, y: float, anchor: str, text: str, kind: str) -> SafeString:
    return format_html(
        '<text class="{}" x="{}" y="{}" text-anchor="{}" dominant-baseline="central">{}</text>',
        kind,
        f"{x:.1f}",
        f"{y:.1f}",
        anchor,
        text,
    )


def _name(resource: str, sites: Mapping[str, str]) -> str:
    name = sites.get(resource, resource)
    return name if len(name) <= _LABEL_CHARACTERS else f"{name[: _LABEL_CHARACTERS - 1]}…"


def _time(transfer: RunTransfer) -> str:
    return "" if transfer.seconds is None else seconds_text(transfer.seconds)
