"""The permission of an operation, checked before its query and its body are read.

``declare`` names the checks of an operation. A caller without the permission learns nothing of what would be
wrong with the request, and the server reads and validates no body for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from monitor.web.api.http.declare import KEY

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from ninja.operation import Operation


def check_first(operation: Operation) -> None:
    """Change *operation*, of a bound router, to check what it declares before it parses a request."""
    declared = (operation.openapi_extra or {}).get(KEY, {})
    permission, subject = declared.get("permission"), declared.get("subject")
    parse = operation._get_values  # noqa: SLF001  # what follows authentication, and precedes the view
    path_models = [model for model in operation.models if model.__ninja_param_source__ == "path"]

    def checked(request: HttpRequest, path: Any, response: HttpResponse) -> dict[str, Any]:
        if permission is not None:
            permission(request)
        if subject is not None:
            values: dict[str, Any] = {}
            try:
                for model in path_models:
                    values |= model.resolve(request, operation.api, path)
            except ValidationError:
                return parse(request, path, response)  # which refuses the request for it
            request.subject = subject(request, **values)  # type: ignore[attr-defined]
        return parse(request, path, response)

    if permission is not None or subject is not None:
        operation._get_values = checked  # type: ignore[method-assign, assignment]  # noqa: SLF001


def subject_of(request: HttpRequest) -> Any:
    """Return what the ``subject`` of the operation has found."""
    return request.subject  # type: ignore[attr-defined]  # set by check_first
