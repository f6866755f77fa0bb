"""Waiting for an event that nothing announces: the only poller of the tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

LEAST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 0.01, 0.5
Answer = TypeVar("Answer")


def eventually(holds: Callable[[], Answer], *, within_seconds: float = 60.0) -> Answer:
    """Call *holds* until its answer is true, or the time is up; return the last answer.

    The pause is twice the duration of the last call: on a busy machine polling must not slow down what it
    waits for.
    """
    until = time.monotonic() + within_seconds
    while True:
        asked_at = time.monotonic()
        answer = holds()
        if answer or asked_at > until:
            return answer
        took_seconds = time.monotonic() - asked_at
        time.sleep(min(max(2 * took_seconds, LEAST_PAUSE_SECONDS), MOST_PAUSE_SECONDS))
