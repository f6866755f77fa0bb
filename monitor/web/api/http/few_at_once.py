"""Downloads that cost seconds of processor: a caller gets few of them at once.

Each holds a place (``monitor.depot.access.download_places``) until it is sent. Tokens and sessions of a user
share its places.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from django.core.signals import request_finished
from django.http import HttpResponse
from django.template.loader import render_to_string

from monitor.depot.access.download_places import AT_ONCE, leave_place, take_place
from monitor.operations.web_server.client_address import client_address
from monitor.web.api.http.problems import Refused, of_refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

RETRY_SECONDS = 5
_DETAIL = f"{AT_ONCE} downloads of yours are being sent: wait until one of them has ended"


class FewAtOnce:
    """Decorates the view of a page or of an operation whose answer grows with a history.

    A caller with ``AT_ONCE`` such answers under way gets ``503 busy``. The globals and the signature are
    those of the view: the API reads its parameters from them.
    """

    def __init__(self, view: Callable[..., HttpResponseBase]) -> None:
        update_wrapper(self, view)
        self.__globals__ = view.__globals__
        self._view = view

    def __call__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        leave_place()  # nothing, unless an earlier request of this thread ended in no way at all
        if not take_place(_caller(request)):
            return _busy(request)
        is_streamed = False
        try:
            response = self._view(request, *args, **kwargs)
            is_streamed = response.streaming
            return response
        finally:
            if not is_streamed:  # a stream is computed while it is sent
                leave_place()


few_at_once = FewAtOnce


def _caller(request: HttpRequest) -> str:
    if request.user.is_authenticated:
        return f"user {request.user.pk}"
    return f"address {client_address(request)}"


def _end_request(**_signal: object) -> None:
    leave_place()


# The last response of a request is closed in the thread that sent it: also if the client went away, and if
# another response took the place of the one that was streamed.
request_finished.connect(_end_request, dispatch_uid="few at once")


def _busy(request: HttpRequest) -> HttpResponse:
    if request.path.startswith("/api/"):
        return of_refused(Refused(503, "busy", _DETAIL, retry_seconds=RETRY_SECONDS))
    text = render_to_string("pages/busy.html", {"at_once": AT_ONCE})
    headers = {"Retry-After": str(RETRY_SECONDS), "Cache-Control": "no-store"}
    return HttpResponse(text, status=503, headers=headers)
