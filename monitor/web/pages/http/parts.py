"""Parts of pages: a part that raises is shown as *This part could not be computed*, the rest as always.

A view computes a part by ``compute``; the template renders it between ``{% part "incidents" %}`` and
``{% endpart %}``. Either may raise: the sentence with the id of the request takes the place of the part, the
log has the traceback, and ``/metrics`` counts it. What is not within a part fails the whole page, which then
keeps its navigation (``failed_page``). An answer with a failed part is never taken as current
(``monitor.web.pages.http.updates``).

Of parts that a page has several times, the name has a colon: ``site:anl`` is counted as ``site``.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import connection, transaction
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string

from monitor.core.counters import counters
from monitor.core.log import request_id
from monitor.core.statement_timeout import is_cancelled
from monitor.web.metrics.definitions import PARTS_FAILED
from monitor.web.pages.http import outage

if TYPE_CHECKING:
    from django.http import HttpRequest

Computed = TypeVar("Computed")
logger = logging.getLogger(__name__)
WHOLE = "page"  # the part that a page is counted as if all of it failed
FRAME = "frame"  # the part of a failed page that remains: navigation and banner
_ANSWERS = (Http404, PermissionDenied, SuspiciousOperation)  # Django answers these; they are no failures

# Each is called with the names of page and part before the part is computed, and before it is rendered. Tests
# plant failures here, and learn which parts a page has.
watchers: list[Callable[[str, str], None]] = []


class Rendering:
    """Takes the place of the request of a *page* that is rendered without one, because it is kept for all."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.failed_parts: set[str] = set()


def compute(request: HttpRequest | Rendering, part: str, function: Callable[[], Computed]) -> Computed | None:
    """Return what *function* returns; None if it raises, and the *part* of the page is shown as failed."""
    with guarded(request, part):
        announce(request, part)
        return function()
    return None


def announce(request: HttpRequest | Rendering, part: str) -> None:
    """Tell ``watchers`` that *part* begins; called within the body of ``guarded``."""
    for watcher in watchers:
        watcher(page_of(request), part)


@contextlib.contextmanager
def guarded(request: HttpRequest | Rendering, part: str) -> Iterator[None]:
    """Note an exception in the body as a failure of *part*, and go on behind the body.

    Answers that Django makes of exceptions, and an unreachable database, pass. So does the second statement
    that took too long: a page may occupy a thread for two of them, not for one in each part. In the
    transaction of a request that may change something, the body has a savepoint: a failed statement fails no
    other part.
    """
    try:
        with transaction.atomic() if hasattr(request, "is_recorded") else contextlib.nullcontext():
            yield
    except _ANSWERS:
        raise
    except Exception as error:
        if outage.is_outage(error) or (is_cancelled(error) and slow_part(request)):
            raise
        if is_cancelled(error):
            request.slow_part = part  # type: ignore[union-attr]
        _note_failure(request, part)


def has_failed(request: HttpRequest | Rendering, *parts: str) -> bool:
    """Return whether one of *parts* has failed; without any, whether a part of the page has."""
    failed: set[str] = getattr(request, "failed_parts", set())
    return not failed.isdisjoint(parts) if parts else bool(failed)


def slow_part(request: HttpRequest | Rendering) -> str:
    """Return the part whose statement took too long; empty if there is none."""
    return getattr(request, "slow_part", "")


def page_of(request: HttpRequest | Rendering) -> str:
    """Return the name of the page's URL, whose number is bounded; ``none`` if no page is found."""
    if isinstance(request, Rendering):
        return request.page
    match = request.resolver_match
    return (match.view_name or match.route) if match else "none"


def failed_page(request: HttpRequest) -> HttpResponse:
    """Return the answer to a request whose view raised: the page with its navigation, without its content.

    In a transaction with a failed statement nothing can be read, and before the login of the request is known
    there is no navigation: the answer is a page without one.
    """
    counters.add(PARTS_FAILED.name, page_of(request), WHOLE)
    shown = {"request_id": request_id.get()}
    if hasattr(request, "user") and not connection.needs_rollback:
        with guarded(request, FRAME):
            announce(request, FRAME)
            return HttpResponse(render_to_string("pages/failed.html", shown, request), status=500)
    return HttpResponse(render_to_string("500.html", shown), status=500)


def _note_failure(request: HttpRequest | Rendering, part: str) -> None:
    page = page_of(request)
    request.failed_parts = {*getattr(request, "failed_parts", ()), part}  # type: ignore[union-attr]
    logger.exception("cannot compute the part %s of the page %s", part, page)
    counters.add(PARTS_FAILED.name, page, part.partition(":")[0])
