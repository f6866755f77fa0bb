"""Why there is no prediction."""

from __future__ import annotations

from typing import Literal

from forecasting.base import ForecastingError

Code = Literal["unfaithful", "no_replay", "stale"]


class NoPrediction(ForecastingError):
    """The runs do not allow a prediction; the message says why.

    *code* is ``unfaithful`` (the replay does not take as long as the application where both ran),
    ``no_replay`` (runs are missing that a prediction needs) or ``stale`` (the replays are too old).
    """

    def __init__(self, code: Code, reason: str) -> None:
        super().__init__(reason)
        self.code = code
