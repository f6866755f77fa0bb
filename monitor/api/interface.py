"""The API as a whole: every error is a problem, and its description says so."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from django.urls import URLPattern
from ninja import NinjaAPI

from monitor.api.problems import METHOD_NOT_ALLOWED, not_allowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase
    from django.urls import URLResolver
    from ninja.openapi.schema import OpenAPISchema

    View = Callable[..., HttpResponseBase]

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457; some say more than this.",
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "of the status"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "stable, for programs"},
        "detail": {"type": "string", "description": "what was wrong, for people"},
    },
}
_ANY_ERROR = {
    "description": "Whatever else went wrong",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Api(NinjaAPI):
    """Ninja's, with problems also where it has errors of its own form."""

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _told(pattern.callback)
        return patterns, app, namespace

    def get_openapi_schema(self, **asked: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**asked)
        schema["components"]["schemas"]["Problem"] = PROBLEM
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["default"] = _ANY_ERROR
        return schema


def _told(view: View) -> View:
    """*view*, which says in our form that a method is not allowed."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code == METHOD_NOT_ALLOWED:
            return not_allowed(request, response["Allow"])
        return response

    return answer
