"""Probes that this server has: roles, parameters, stages and metrics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

import probes
from monitor.core.units import unit_of
from monitor.web.api.http.auth import SCHEDULER_AUTH
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse
from monitor.web.api.http.registered import Registered
from probes.base import UnknownProbe
from reporters.report import totals

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from probes.base import Parameter

router = Router(tags=["registries"], auth=SCHEDULER_AUTH)

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}  # as JSON Schema calls them


class ParameterOut(Schema):
    """A parameter of a probe."""

    name: str = Field(description="The name of the parameter.", examples=["file_bytes"])
    type: str = Field(
        description="`integer`, `number`, `string` or `boolean`, as in JSON Schema.", examples=["integer"]
    )
    unit: str = Field(description="The unit of a number; empty: none.", examples=["bytes"])
    default: int | float | str | bool = Field(
        description="The value of a series that gives none.", examples=[100_000_000]
    )
    minimum: float | None = Field(description="The least number; null: none.", examples=[1])
    maximum: float | None = Field(description="The greatest number; null: none.", examples=[1e12])
    choices: list[str] = Field(description="The texts that are possible; empty: any.", examples=[[]])
    description: str = Field(description="What it is for.", examples=["size of each source file"])


class RoleOut(Schema):
    """A role of resources in a probe."""

    name: str = Field(description="The name of the role.", examples=["sources"])
    minimum: int = Field(description="The least number of resources.", examples=[1])
    maximum: int = Field(description="The greatest number of resources.", examples=[16])
    description: str = Field(description="What its resources do.", examples=["generate the input files"])


class ProbeStageOut(Schema):
    """A stage of a probe; its duration is the metric `stage.NAME.seconds`."""

    name: str = Field(description="The name of the stage.", examples=["transfer_data"])
    category: str = Field(
        description="`setup`, `transfer`, `queue`, `compute` or `cleanup`.", examples=["transfer"]
    )


class ProbeMetricOut(Schema):
    """A metric that every passed run of a probe has. A run may have further ones (`show_series`)."""

    name: str = Field(description="The name of the metric.", examples=["total.seconds"])
    unit: str = Field(description="The unit.", examples=["seconds"])


class ProbeOut(Schema):
    """A probe as the server has it; the agent of a site may have another version."""

    name: str = Field(description="The name of the probe.", examples=["gather"])
    version: str = Field(description="The version.", examples=["1.0"])
    kind: str = Field(description="`grid` or `application`.", examples=["grid"])
    summary: str = Field(description="What it does.", examples=["Copies a file round a ring."])
    roles: list[RoleOut] = Field(description="The roles, in order.")
    parameters: list[ParameterOut] = Field(description="The parameters.")
    stages: list[ProbeStageOut] = Field(description="The stages, in order.")
    metrics: list[ProbeMetricOut] = Field(description="The metrics of every passed run.")


class ProbeList(ListOut):
    """A page of probes, by name."""

    probes: list[ProbeOut]


@router.get("/probes", response=ProbeList, operation_id="list_probes", summary="List probes")
def list_probes(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """All probes of this server, by name."""
    return _probes.listed(query, ProbeList)


@router.get(
    "/probes/{probe}",
    response=ProbeOut,
    operation_id="show_probe",
    openapi_extra=declare(errors={404: ["unknown_probe"]}),
    summary="Show a probe",
)
def show_probe(request: HttpRequest, probe: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    return _probes.shown(query, probe, ProbeOut)


def _shown(name: str) -> dict[str, Any]:
    probe = probes.load(name)
    durations = [*totals([]), *(f"stage.{stage.name}.seconds" for stage in probe.stages)]
    return {
        "name": name,
        "version": probe.version,
        "kind": probe.kind,
        "summary": probe.summary,
        "roles": [
            {
                "name": role_name,
                "minimum": role.minimum,
                "maximum": role.maximum,
                "description": role.description,
            }
            for role_name, role in probe.roles.items()
        ],
        "parameters": [_parameter(key, parameter) for key, parameter in probe.parameters.items()],
        "stages": [{"name": stage.name, "category": stage.category} for stage in probe.stages],
        "metrics": [{"name": metric, "unit": "seconds"} for metric in durations],
    }


def _parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    return {
        "name": name,
        "type": _TYPES[type(parameter.default)],
        "unit": unit_of(name),
        "default": parameter.default,
        "minimum": parameter.minimum if math.isfinite(parameter.minimum) else None,
        "maximum": parameter.maximum if math.isfinite(parameter.maximum) else None,
        "choices": list(parameter.choices),
        "description": parameter.description,
    }


_probes = Registered("probe", probes.names, _shown, UnknownProbe)
