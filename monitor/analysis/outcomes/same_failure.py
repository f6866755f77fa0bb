"""Other runs that failed as one run did, at about the same time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from monitor.models.run import WITH_SIGNATURE, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitor.models.run import RunQuerySet

AROUND = timedelta(hours=24)
MOST_COUNTED = 1000


@dataclass(frozen=True)
class SameFailure:
    """The failed runs with one cause within ``AROUND`` of a run.

    Attributes:
        newest: the newest of them.
        count: how many there are besides the run itself, at most ``MOST_COUNTED``.
        series: of how many series these are.
    """

    newest: Sequence[Run]
    count: int
    series: int

    @property
    def count_text(self) -> str:
        return f"{self.count}+" if self.count == MOST_COUNTED else str(self.count)


def same_failure(run: Run, among: RunQuerySet, most: int = 5) -> SameFailure | None:
    """Return the runs of *among* with the cause of *run*; None if *run* has no cause.

    Runs of unknown causes are the same if their texts are.
    """
    if run.signature is None:
        return None
    window = (run.slot - AROUND, run.slot + AROUND)
    same = among.filter(signature=run.signature, slot__range=window, state__in=WITH_SIGNATURE)
    if run.signature.is_unknown:
        same = same.filter(reason=run.reason)
    keys = same.exclude(pk=run.pk).order_by("-slot").values_list("pk", "slot", "series")[:MOST_COUNTED]
    rows = list(keys)
    shown = rows[:most]
    newest = Run.objects.filter(pk__in=[key for key, _, _ in shown], slot__in=[slot for _, slot, _ in shown])
    return SameFailure(
        list(newest.select_related("series").order_by("-slot")), len(rows), len({row[2] for row in rows})
    )
