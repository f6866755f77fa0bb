"""One strictness for every operation: unknown and repeated parameters and keys are refused, and so is a body
where none is expected or of another type than JSON."""

from __future__ import annotations

import json
import re
from functools import wraps
from typing import TYPE_CHECKING, Any

from ninja.parser import Parser

from monitor.core.clipping import MOST_NAME, clipped
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.utils.datastructures import MultiValueDict
    from ninja.operation import Operation

MOST_KEYS = 1_000  # of an object
MOST_ITEMS = 20_000  # of all objects and arrays of a body together: each may be an error of its own
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BODY_SOURCES = frozenset({"body", "form", "file"})


class StrictParser(Parser):
    """Reads query strings and JSON bodies; refuses what is repeated in them."""

    def parse_body(self, request: HttpRequest) -> Any:
        if request.content_type not in {"application/json", "", None}:
            kind = clipped(request.content_type or "")
            raise Refused(415, "unsupported", f"expected a body of the type application/json, got {kind!r}")
        parsed = parse_json(request.body)
        if rb"\u0000" in request.body:
            _refuse_nul("the body", parsed)
        return parsed

    def parse_querydict(
        self, data: MultiValueDict[str, Any], list_fields: list[str], request: HttpRequest
    ) -> dict[str, Any]:
        for name, values in data.lists():
            if len(values) > 1 and name not in list_fields:
                raise Refused(422, "invalid", f"{clipped(name)}: expected one value, got {len(values)}")
            _refuse_nul("parameters", [name])
            _refuse_nul(name, values)
        parsed: dict[str, Any] = super().parse_querydict(data, list_fields, request)
        return parsed


def parse_json(text: bytes) -> Any:
    """Return the value of the JSON *text*.

    Raises:
        Refused: it is no JSON, repeats a key, or has too many levels, keys or values.
    """
    _check_items(text)
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except RecursionError as error:
        raise Refused(400, "malformed", "expected JSON, got too many levels of it") from error
    except ValueError as error:
        raise Refused(400, "malformed", f"expected JSON: {error}") from error


def refuse_undeclared(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return the *view* of an operation, changed to refuse parameters and a body that are not declared."""
    operation: Operation = view._ninja_operation  # type: ignore[attr-defined]  # noqa: SLF001  # set by ninja
    names = _query_names(operation)
    takes_body = "requestBody" in (operation.openapi_extra or {}) or any(
        model.__ninja_param_source__ in _BODY_SOURCES for model in operation.models
    )

    @wraps(view)
    def strict(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        _check_names(request, names)
        if not takes_body and _has_body(request):
            raise Refused(422, "invalid", "expected no body")
        return view(request, *args, **kwargs)

    return strict


def _query_names(operation: Operation) -> frozenset[str]:
    return frozenset(
        name
        for model in operation.models
        if model.__ninja_param_source__ == "query"
        for name in model.__ninja_flatten_map__
    )


def _check_names(request: HttpRequest, names: frozenset[str]) -> None:
    unknown = next((name for name in request.GET if name not in names), None)
    if unknown is not None:
        raise Refused(422, "invalid", f"there is no parameter {unknown[:MOST_NAME]!r}", known=sorted(names))


def _has_body(request: HttpRequest) -> bool:
    if request.META.get("CONTENT_LENGTH") in {None, "", "0"}:  # most requests; the web server adds up chunks
        return False
    if request.content_type == "multipart/form-data":
        return bool(request.POST or request.FILES)
    return request.body.strip() not in {b"", b"{}"}


def _check_items(text: bytes) -> None:
    """Raise Refused if the JSON *text* has too many items: to validate and to name each costs memory."""
    if text.count(b",") < MOST_ITEMS:
        return  # nearly all bodies
    if _TEXT.sub(b"", text).count(b",") >= MOST_ITEMS:
        expected = (
            f"expected at most {MOST_ITEMS:,} values in the body, of all its objects and arrays together"
        )
        raise Refused(413, "too_large", f"{expected}, got more")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return *pairs* as an object. Raises ValueError if a key is repeated, Refused if there are too many."""
    if len(pairs) > MOST_KEYS:
        raise Refused(
            413, "too_large", f"expected at most {MOST_KEYS:,} keys in an object, got {len(pairs):,}"
        )
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated[:MOST_NAME]!r} is repeated")
    return found


def _refuse_nul(name: str, value: Any) -> None:
    """Raise Refused if a text in *value* has a NUL character, which PostgreSQL does not store."""
    if isinstance(value, str) and "\x00" in value:
        raise Refused(422, "invalid", f"{clipped(name)}: expected text, got a NUL character")
    if isinstance(value, dict):
        _refuse_nul(name, [*value])
        for key, inner in value.items():
            _refuse_nul(key, inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(name, inner)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
