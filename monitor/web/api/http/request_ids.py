"""The id of a request: in the answer, in problems and in every line of the log about it."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from monitor.core.log import request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

HEADER = "X-Request-ID"
_WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,99}", re.ASCII)


class RequestIdMiddleware:
    """Takes the id of a client or proxy if it is well formed, or makes one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(HEADER, "")
        key = given if _WELL_FORMED.fullmatch(given) else uuid.uuid4().hex
        token = request_id.set(key)
        try:
            response = self._get_response(request)
        finally:
            request_id.reset(token)
        response[HEADER] = key
        return response
