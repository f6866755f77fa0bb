"""Methods of forecasting that a request may name."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

from forecasting import methods
from forecasting.base import UnknownMethod
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse
from monitor.web.api.http.registered import Registered

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["registries"], auth=SCHEDULER_AUTH)


class MethodOut(Schema):
    """A forecasting method."""

    name: str = Field(description="The name, as `method` of a forecast.", examples=["seasonal"])
    description: str = Field(
        description="What it forecasts from, with its source if it is published.",
        examples=["Forecasts the last value."],
    )
    uses_times: bool = Field(
        description="Whether the forecast depends on when the values happened.", examples=[False]
    )
    uses_predictors: bool = Field(
        description="Whether it uses values of probes beside those of the metric itself.", examples=[False]
    )
    uses_stages: bool = Field(
        description="Whether it needs the stages of the series and of its probes.", examples=[False]
    )
    is_expert: bool = Field(description="Whether `blend` and `auto` use it.", examples=[True])


class MethodList(ListOut):
    """A page of methods, by name."""

    methods: list[MethodOut]


@router.get("/methods", response=MethodList, operation_id="list_methods", summary="List forecasting methods")
def list_methods(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """All methods, by name."""
    return _methods.listed(query, MethodList)


@router.get(
    "/methods/{method}",
    response=MethodOut,
    operation_id="show_method",
    openapi_extra=declare(errors={404: ["unknown_method"]}),
    summary="Show a forecasting method",
)
def show_method(request: HttpRequest, method: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return _methods.shown(query, method, MethodOut)


def _shown(name: str) -> dict[str, Any]:
    method = methods.load(name)
    return {
        "name": name,
        "description": inspect.getdoc(inspect.getmodule(method)) or "",
        "uses_times": method.USES_TIMES,
        "uses_predictors": method.USES_PREDICTORS,
        "uses_stages": method.USES_STAGES,
        "is_expert": method.EXPERT,
    }


_methods = Registered("method", methods.names, _shown, UnknownMethod)
