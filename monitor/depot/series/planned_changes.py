"""What a change of the configuration of a series means for its history, before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from monitor.depot.series.segment_diff import segment_changes
from monitor.depot.series.segments import local_identity
from monitor.models import Segment


class MeasuredConfiguration(NamedTuple):
    """The part of the configuration of a series that decides to which segment a run belongs."""

    probe: str
    parameters: Mapping[str, Any]
    bindings: Mapping[str, Sequence[str]]


def segment_effect(series: str, before: MeasuredConfiguration, after: MeasuredConfiguration) -> str:
    """Return what the change of the series *series* means for its segments; empty: nothing."""
    old, new = local_identity(*before), local_identity(*after)
    changes = segment_changes(old, new)
    if not changes:
        return ""
    what = "; ".join(map(str, changes))
    segments = Segment.objects.filter(series__name=series)
    earlier = segments.filter(fingerprint=new.fingerprint).first()
    if earlier is not None:
        return (
            f"The next run continues segment {earlier.number}, which was measured with these values: {what}."
        )
    if not segments.exists():
        return ""
    return f"The next run begins a new segment, with its own history and forecasts: {what}."
