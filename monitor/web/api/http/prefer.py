"""``Prefer: wait=5`` (RFC 7240): the server waits for an answer that is being computed, instead of a 503.

A waiting request occupies a thread, so that only some threads of a web process wait; further requests get the
503 at once, as requests without the preference do.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from monitor.analysis.forecasts.not_ready import NotReady

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest

Answer = TypeVar("Answer")
MOST_SECONDS = 10
MOST_WAITING = 4  # of the 16 threads of a web process
POLL_SECONDS = 0.25  # the worker stores forecasts; a question whether one is there takes milliseconds
PARAMETER: Mapping[str, Any] = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": (
        f"`wait=` and a number of seconds, at most {MOST_SECONDS}: wait as long for a forecast that is being"
        " computed (RFC 7240). `Preference-Applied` says that the server did so."
    ),
    "schema": {"type": "string", "maxLength": 200},
    "example": "wait=5",
}


class Waiting:
    """The requests of this process that wait."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._places = threading.BoundedSemaphore(most)

    def answer(self, request: HttpRequest, ask: Callable[[float | None], Answer]) -> Answer:
        """Return the answer of *ask*, called again while it is not ready and the client prefers to wait.

        The argument of *ask* is for how long it may compute itself; None in the first call: as usual.

        Raises:
            NotReady: *preference* says which one was applied, if any.
        """
        seconds = preferred_wait_seconds(request.headers.get("Prefer", ""))
        try:
            return ask(None)
        except NotReady:
            if not seconds or not self._places.acquire(blocking=False):
                raise
        preference = f"wait={seconds}"
        try:
            answer = _wait(ask, time.monotonic() + seconds)
        except NotReady as error:
            error.preference = preference
            raise
        else:
            request.preference = preference  # type: ignore[attr-defined]  # for ``conventions``
            return answer
        finally:
            self._places.release()


WAITING = Waiting()


def preferred_wait_seconds(header: str) -> int:
    """Return the seconds of the first ``wait`` of *header*, at most ``MOST_SECONDS``; 0 without one."""
    for part in header.split(","):
        name, _, value = part.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            text = value.strip().strip('"')
            return min(int(text[:9]), MOST_SECONDS) if text.isascii() and text.isdigit() else 0
    return 0


def _wait(ask: Callable[[float | None], Answer], until: float) -> Answer:
    while True:
        time.sleep(min(POLL_SECONDS, max(until - time.monotonic(), 0.0)))
        try:
            return ask(0.0)
        except NotReady:
            if time.monotonic() >= until:
                raise
