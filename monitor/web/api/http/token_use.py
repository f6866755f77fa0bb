"""Write when a token was used last, also by a request that is refused and changes nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import Error

from monitor.models import ApiToken

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

logger = logging.getLogger(__name__)


class TokenUseMiddleware:
    """Write the use that authentication noted as ``request.token_use``, after the transaction of the request.

    It lies outside of the middleware that rolls back what a refused request changed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._get_response(request)
        use: tuple[int, str] | None = getattr(request, "token_use", None)
        if use is not None:
            try:
                ApiToken.objects.note_use(*use)
            except Error as error:  # the answer stands, whatever the request did
                logger.warning("use of token %s not written: %s", use[0], str(error).partition("\n")[0])
        return response
