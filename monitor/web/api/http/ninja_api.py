"""Ninja's API class, with every error as a problem in the answers and in the OpenAPI document."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET
from ninja import NinjaAPI
from ninja.responses import Response

from monitor.core.clipping import MOST_ERRORS
from monitor.web.api.http.conventions import conventional
from monitor.web.api.http.openapi import complete
from monitor.web.api.http.permission import check_first
from monitor.web.api.http.problems import InvalidFields
from monitor.web.api.http.static_answer import StaticAnswer

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.urls import URLResolver
    from ninja.errors import ValidationError, ValidationErrorContext
    from ninja.openapi.schema import OpenAPISchema

JSON = "application/json; charset=utf-8"
_MOST_REQUESTED = ("forecasts", "reports", "reporters/<reporter>/exchange")


class Api(NinjaAPI):
    """Ninja's API that answers a wrong method with a problem, and declares a problem for every operation."""

    def __init__(self, **options: Any) -> None:
        super().__init__(openapi_url=None, docs_url=None, **options)  # ``urls`` has the document
        self._document: OpenAPISchema | None = None
        self._document_lock = threading.Lock()

    @property
    def urls(self) -> tuple[list[URLResolver | URLPattern], str, str]:
        patterns, app, namespace = super().urls
        document = StaticAnswer(lambda: Response(self.document()).content, JSON)
        patterns.insert(0, path("openapi.json", csrf_exempt(require_GET(document)), name="openapi-json"))
        for pattern in patterns:
            if isinstance(pattern, URLPattern):
                pattern.callback = conventional(pattern.callback)
        # Django tries one pattern after the other, and there are more than a hundred.
        patterns.sort(key=lambda pattern: str(pattern.pattern) not in _MOST_REQUESTED)
        return patterns, app, namespace

    def check_permissions_first(self) -> None:
        """Check the declared permission of each operation before its request is parsed."""
        for router in self._get_bound_routers():
            for view in router.path_operations.values():
                for operation in view.operations:
                    check_first(operation)

    def create_temporal_response(self, _request: HttpRequest) -> HttpResponse:
        """Return an empty response. Ninja's is empty text, whose encoding is looked up at each request."""
        return HttpResponse(b"", content_type=JSON)

    def document(self) -> OpenAPISchema:
        """Return the OpenAPI document, which a process makes once: that takes a second of processor time."""
        with self._document_lock:
            if self._document is None:
                self._document = self.get_openapi_schema()
            return self._document

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
