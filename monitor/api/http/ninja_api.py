"""Ninja's API class, with every error as a problem in the answers and in the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.urls import URLPattern
from ninja import NinjaAPI

from monitor.api.http.conventions import conventional
from monitor.api.http.openapi import complete
from monitor.api.http.problems import InvalidFields
from monitor.clipping import MOST_ERRORS

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.urls import URLResolver
    from ninja.errors import ValidationError, ValidationErrorContext
    from ninja.openapi.schema import OpenAPISchema

JSON = "application/json; charset=utf-8"
_MOST_REQUESTED = ("forecasts", "reports", "reporters/<reporter>/exchange")


class Api(NinjaAPI):
    """Ninja's API that answers a wrong method with a problem, and declares a problem for every operation."""

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app, namespace = super().urls
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = conventional(pattern.callback)
        # Django tries one pattern after the other, and there are more than a hundred.
        patterns.sort(key=lambda pattern: str(pattern.pattern) not in _MOST_REQUESTED)
        return patterns, app, namespace

    def create_temporal_response(self, _request: HttpRequest) -> HttpResponse:
        """Return an empty response. Ninja's is empty text, whose encoding is looked up at each request."""
        return HttpResponse(b"", content_type=JSON)

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**options)
        complete(schema)
        return schema

    def validation_error_from_error_contexts(
        self, error_contexts: list[ValidationErrorContext[Any]]
    ) -> ValidationError:
        """Return one error for all, with the first of pydantic's errors, and release pydantic's.

        The garbage collector does not see the ValueErrors within a pydantic error, and the traceback of each
        leads to the frame of Ninja that holds *error_contexts*: the process would keep the request for good.
        """
        fields: list[dict[str, Any]] = []
        count = 0
        for context in error_contexts:
            errors = context.pydantic_validation_error.errors(include_url=False, include_input=False)
            count += len(errors)
            places = context.model.__ninja_flatten_map_reverse__
            for error in errors[: MOST_ERRORS - len(fields)]:
                field = dict(error)
                field["loc"] = (context.model.__ninja_param_source__, *places.get(error["loc"], error["loc"]))
                if isinstance(cause := error.get("ctx", {}).get("error"), Exception):
                    field["ctx"] = error["ctx"] | {"error": str(cause)}
                fields.append(field)
        error_contexts.clear()
        return InvalidFields(fields, count - len(fields))
