"""Ninja's API class, with every error as a problem in the answers and in the OpenAPI document."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from django.urls import URLPattern
from ninja import NinjaAPI
from ninja.openapi.docs import ABS_TPL_PATH, Swagger

from monitor.api.http.problems import METHOD_NOT_ALLOWED, not_allowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase
    from django.urls import URLResolver
    from ninja.openapi.schema import OpenAPISchema

    View = Callable[..., HttpResponseBase]

PROBLEM: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457; some problems have further fields.",
    "type": "object",
    "required": ["type", "title", "status", "code", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "the reason phrase of the status"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "stable identifier, for programs"},
        "detail": {"type": "string", "description": "explanation for people"},
    },
}
_ANY_ERROR = {
    "description": "Any other error",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class LocalSwagger(Swagger):
    """The documentation page of the API, with ninja's static files from this server instead of a CDN."""

    template_cdn = str(ABS_TPL_PATH / "swagger.html")  # used because ninja is not an installed app


class Api(NinjaAPI):
    """Ninja's API that answers a wrong method with a problem, and declares a problem for every operation."""

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = _with_problem(pattern.callback)
        return patterns, app, namespace

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        schema["components"]["schemas"]["Problem"] = PROBLEM
        for operations in schema["paths"].values():
            for operation in operations.values():
                operation["responses"]["default"] = _ANY_ERROR
        return schema


def _with_problem(view: View) -> View:
    """Return *view*, changed to answer a wrong method with a problem."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        if response.status_code == METHOD_NOT_ALLOWED:
            return not_allowed(request, response["Allow"])
        return response

    return answer
