"""What a forecast from elsewhere is based on, as it is stored with the forecast. Loads no numerical code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forecasting.elsewhere.class_ratio import ClassRatio


@dataclass(frozen=True)
class ForecastBasis:
    """The runs and replays behind a forecast from elsewhere; times in seconds.

    Attributes:
        signature: the digest of the calls.
        reference: the series of the application; *reference_replay* replays its calls on the same resources.
        reference_runs: how many of its runs had a replay near in time; *reference_at* is the newest slot.
        replay: the series that replays the calls on the target; *replay_at* is its newest slot.
        io_seconds: the predicted time of input and output: the sum of *classes*.
        compute_seconds: the remaining time of a run, without the wait in the queue.
        compute_from: where *compute_seconds* come from: ``reference``.
        queue_seconds: the median wait in the target's queue; *queue_bound_seconds* is the bound on 95 % of
            the waits.
    """

    signature: str
    reference: str
    reference_replay: str
    reference_runs: int
    reference_at: datetime
    replay: str
    replay_runs: int
    replay_at: datetime
    io_seconds: float
    classes: Sequence[ClassRatio]
    compute_seconds: float
    compute_from: str
    queue_seconds: float
    queue_bound_seconds: float

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ForecastBasis:
        """Return the basis that ``document`` has returned."""
        times = {name: datetime.fromisoformat(document[name]) for name in ("reference_at", "replay_at")}
        classes = [ClassRatio(**each) for each in document["classes"]]
        return cls(**{**document, **times, "classes": classes})

    def document(self) -> dict[str, Any]:
        """Return the basis as a JSON document."""
        times = {name: getattr(self, name).isoformat() for name in ("reference_at", "replay_at")}
        return {**vars(self), **times, "classes": [vars(each) for each in self.classes]}
