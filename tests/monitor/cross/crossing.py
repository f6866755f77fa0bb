"""Let identities visit pages and operations, and say what is wrong with what they get."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.signals import got_request_exception
from django.db import transaction
from django.http import HttpResponseBase

from monitor.core.counters import counters
from monitor.web.metrics.definitions import PARTS_FAILED
from tests.monitor.cross import judge
from tests.monitor.cross.visits import Visit, links
from tests.monitor.depot.access.world import Identity


@dataclass(frozen=True)
class Meeting:
    visit: Visit
    identity: Identity


def crossed(meetings: Iterable[Meeting], draw: random.Random, *, further: int) -> list[str]:
    """Make the visits; return what is wrong, in words.

    Of each page, *further* links on itself are followed: its filters, tabs and further pages.
    """
    before, found = failures(), []
    for meeting in meetings:
        answer, wrong = _visited(meeting, meeting.visit.path)
        found += wrong
        if meeting.visit.is_operation or "?" in meeting.visit.path or answer.streaming:
            continue
        others = links(answer.content) if answer.status_code == 200 else []  # type: ignore[attr-defined]
        for link in draw.sample(others, min(further, len(others))):
            found += _visited(meeting, meeting.visit.path + link)[1]
    counted = {key for key, count in failures().items() if count != before.get(key, 0)}
    return found + [f"counted as failed: {key}" for key in sorted(counted)]


def failures() -> dict[str, float]:
    """Return how many parts of pages have failed, by page and part."""
    return {" ".join(key[1:]): count for key, count in counters.read().items() if key[0] == PARTS_FAILED.name}


def _visited(meeting: Meeting, path: str) -> tuple[HttpResponseBase, list[str]]:
    """Return the answer, and what is wrong with it. What it changed, such as a session, is rolled back."""
    client = meeting.identity.client
    client.raise_request_exception = False
    with _raised() as errors, transaction.atomic():
        answer: HttpResponseBase = client.get(path)
        transaction.set_rollback(True)
    wrong = [*judge.wrong(meeting.visit, answer), *errors]
    return answer, [f"{path} as {meeting.identity}: {each}" for each in wrong]


@contextmanager
def _raised() -> Iterator[list[str]]:
    """Collect the exceptions of requests, each with the place that raised it."""
    errors: list[str] = []

    def note(sender: object, request: Any, **_: Any) -> None:
        import sys

        error = sys.exc_info()[1]
        places = (
            [
                each
                for each in traceback.extract_tb(error.__traceback__)
                if "site-packages" not in each.filename
            ]
            if error
            else []
        )
        errors.append(
            f"{type(error).__name__}: {error} at {places[-1].filename}:{places[-1].lineno}"
            if places
            else repr(error)
        )

    got_request_exception.connect(note)
    try:
        yield errors
    finally:
        got_request_exception.disconnect(note)
