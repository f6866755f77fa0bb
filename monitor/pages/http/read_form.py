"""Read the form of a request once, before anything else asks for it, and refuse one that is unreadable.

Django reads a form where something first asks for it: in a view, or in a template of an error page, whose own
error would end as a 500. A page repeats the fields of a form that it refuses; so their bytes are limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.utils.datastructures import MultiValueDict

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 64 * 1024
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class FormMiddleware:
    """Answer an unreadable form with 400, a too large one with 413. The API reads its bodies itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.content_type in _FORMS and not request.path_info.startswith("/api/"):
            refusal = _refusal(request)
            if refusal is not None:
                return refusal
        return self.get_response(request)


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Return the answer to a form that cannot be read; None if it was read."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length) > MOST_BYTES:
        return _refuse(request, 413, f"The form is larger than {MOST_BYTES:,} bytes.")
    try:
        request.POST  # noqa: B018  # read and kept
    except RequestDataTooBig:
        return _refuse(
            request, 413, f"The form is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes."
        )
    except (SuspiciousOperation, MultiPartParserError, UnreadablePostError, BadRequest, UnicodeError):
        return _refuse(
            request, 400, "The form cannot be read: it is malformed, or has too many fields or files."
        )
    return None


def _refuse(request: HttpRequest, status: int, reason: str) -> HttpResponse:
    request.POST = QueryDict()  # templates may ask for it
    request._files = MultiValueDict()  # type: ignore[attr-defined]  # noqa: SLF001  # as Django after an error
    return render(request, "form_refused.html", {"reason": reason}, status=status)
