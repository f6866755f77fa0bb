"""Read the form of a request once, before anything else asks for it, and refuse one that is unreadable.

Django reads a form where something first asks for it: in a view, or in a template of an error page, whose own
error would end as a 500. A page repeats the fields of a form that it refuses; so their bytes are limited. A
view whose fields may contain more states its bytes by ``accepts_form``; they hold for logged-in users.

The links of a page repeat its query, some twenty times: its bytes are limited, too, except where a view
states by ``accepts_long_query`` that no link repeats it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.utils.datastructures import MultiValueDict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from django.forms import Field

MOST_BYTES = 64 * 1024  # of a stranger's form, and of what a form sends beside the fields that it counts
MOST_QUERY_BYTES = 2_000
MOST_NAMES = 1_000  # that are counted for a list without a limit of its own
_ENCODED_BYTES = 12  # of a character: up to four bytes of UTF-8, each sent as %XX
_LINE_END_BYTES = 6  # %0D%0A
_NAME_BYTES = 100  # names are ASCII
_LOGIN = "/login/"  # providers of logins send long codes; no link repeats them
_View = TypeVar("_View", bound="Callable[..., Any]")
_FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class FormMiddleware:
    """Answer an unreadable form with 400, a too large one with 413, a too long query with 414.

    The API reads queries and bodies itself.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        refusal = None
        if not request.path_info.startswith("/api/"):
            refusal = _refusal_of_query(request)
            if refusal is None and request.content_type in _FORMS:
                refusal = _refusal(request)
        return self.get_response(request) if refusal is None else refusal


def accepts_form(field_bytes: int) -> Callable[[_View], _View]:
    """Return a decorator for a view whose fields are sent as up to *field_bytes* bytes.

    It must be outermost, or below decorators that copy the attributes of a view, as ``functools.wraps`` does.
    """

    def decorated(view: _View) -> _View:
        view.most_form_bytes = MOST_BYTES + field_bytes  # type: ignore[attr-defined]
        return view

    return decorated


def accepts_long_query(view: _View) -> _View:
    """Let the query of *view* have as many bytes as a request line; a decorator like ``accepts_form``."""
    view.has_long_query = True  # type: ignore[attr-defined]
    return view


def entry_bytes(schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> int:
    """Return the bytes that a value of the JSON *schema* takes at most in a form.

    A list without a limit counts as ``MOST_NAMES`` names, a text without one as a name.
    """
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    if "$ref" in schema:
        return entry_bytes(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return max(entry_bytes(each, definitions) for each in schema["anyOf"])
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        named = sum(entry_bytes(each, definitions) + _NAME_BYTES for each in properties.values())
        return named + (MOST_NAMES * 2 * _NAME_BYTES if schema.get("additionalProperties") else 0)
    if schema.get("type") == "array":
        item = entry_bytes(schema.get("items", {}), definitions) + _LINE_END_BYTES
        return int(schema.get("maxItems", MOST_NAMES)) * item
    return int(schema["maxLength"]) * _ENCODED_BYTES if "maxLength" in schema else _NAME_BYTES


def fields_bytes(fields: Iterable[Field]) -> int:
    """Return the bytes that the *fields* of a form of Django take at most; one without a limit is a name."""
    lengths = (getattr(each, "max_length", None) for each in fields)
    return sum(_NAME_BYTES if each is None else each * _ENCODED_BYTES for each in lengths)


def _refusal_of_query(request: HttpRequest) -> HttpResponse | None:
    if len(request.META.get("QUERY_STRING", "")) <= MOST_QUERY_BYTES or request.path_info.startswith(_LOGIN):
        return None
    with contextlib.suppress(Resolver404):
        if hasattr(resolve(request.path_info).func, "has_long_query"):
            return None
    reason = f"The address has more than {MOST_QUERY_BYTES:,} characters after the question mark."
    request.GET = QueryDict()  # templates may ask for it
    return _refuse(request, 414, f"{reason} Use fewer or shorter filters.")


def _refusal(request: HttpRequest) -> HttpResponse | None:
    """Return the answer to a form that cannot be read; None if it was read."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length) > MOST_BYTES and int(length) > (most := _most_bytes(request)):
        return _refuse(request, 413, f"The form is larger than {most:,} bytes.")
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


def _most_bytes(request: HttpRequest) -> int:
    """Return how large the form may be: more than ``MOST_BYTES`` only if the view says so, of a known user.

    Forms of the admin pages have as many rows as the object has related ones; Django's own limit holds there.
    """
    try:
        match = resolve(request.path_info)
    except Resolver404:
        return MOST_BYTES
    if match.app_names == ["admin"] and match.url_name:  # the page for unknown addresses has no name
        return settings.DATA_UPLOAD_MAX_MEMORY_SIZE if admin.site.has_permission(request) else MOST_BYTES
    most: int = getattr(match.func, "most_form_bytes", MOST_BYTES)
    return most if most > MOST_BYTES and request.user.is_authenticated else MOST_BYTES


def _refuse(request: HttpRequest, status: int, reason: str) -> HttpResponse:
    request.POST = QueryDict()  # templates may ask for it
    request._files = MultiValueDict()  # type: ignore[attr-defined]  # noqa: SLF001  # as Django after an error
    return render(request, "form_refused.html", {"reason": reason}, status=status)
