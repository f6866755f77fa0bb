"""Storage areas: rates by use, health, figures of merit, and the analyses of their sweeps."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from ninja import Query, Router, Schema
from pydantic import Field

from monitor.analysis.storage.areas import SeriesVerdict, StorageArea, series_verdicts, storage_areas
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_named, show_item
from monitor.web.api.http.problems import Refused

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["storage"])


class StorageTrendOut(Schema):
    """The relative change of a rate for each step, with its 90 % interval."""

    change: float = Field(description="Change a step, -0.1 is 10 % less.", examples=[-0.02])
    low: float = Field(description="Lower end of the interval.", examples=[-0.05])
    high: float = Field(description="Upper end of the interval.", examples=[0.01])


class StorageRateOut(Schema):
    """The rate of one use of a storage area, and its own history of 180 days."""

    use: str = Field(description="What the area is used for.", examples=["random_read"])
    unit: str = Field(description="The unit of the rates.", examples=["operations_per_second"])
    series: str = Field(description="The name of the series that measures it.", examples=["scratch1-disk"])
    settings: dict[str, str] = Field(
        description="The best setting of a sweep; empty for other probes.", examples=[{"tasks": "4"}]
    )
    n: int = Field(description="The number of values.", examples=[120])
    latest: float = Field(description="The newest value.", examples=[9800.0])
    median: float = Field(description="The median of all values.", examples=[10100.0])
    low: float = Field(description="The 5 % quantile.", examples=[9500.0])
    high: float = Field(description="The 95 % quantile.", examples=[10600.0])
    variation: float = Field(description="The relative standard deviation.", examples=[0.03])
    state: str = Field(
        description="`usual`, `slower`, `faster`, `variable`, or `few` values to say.", examples=["usual"]
    )
    by_time: StorageTrendOut | None = Field(description="The trend for each month.")
    by_fullness: StorageTrendOut | None = Field(description="The trend for each tenth of the capacity used.")
    share_of_best: float | None = Field(
        description="The ratio to the best area that you may see; null if there is no other.", examples=[0.95]
    )


class StorageFigureOut(Schema):
    """A figure of merit."""

    name: str = Field(description="The name of the figure.", examples=["read_iops_per_price"])
    value: float = Field(description="The value of the figure.", examples=[28.1])
    unit: str = Field(
        description="Its unit; prices are in the currency of the grid file.", examples=["IOPS/price"]
    )


class StorageEfficiencyOut(Schema):
    """The rate of a use over that of all parts together."""

    use: str = Field(description="What the area is used for.", examples=["random_read"])
    share: float = Field(description="The rate over that of all parts.", examples=[0.15])
    parts: int = Field(description="The number of parts.", examples=[16])
    part_rate: float = Field(description="The rate of one part.", examples=[39756.0])
    part: str = Field(
        description="The resource with one part; empty: the grid file gives the rate.", examples=["ssd0"]
    )


class StorageAreaOut(Schema):
    """A storage area: a resource with its own scratch."""

    name: str = Field(description="The name of the resource.", examples=["scratch1"])
    site: str = Field(description="The name of its site.", examples=["ncsa"])
    storage: dict[str, Any] = Field(
        description="Medium, capacity, price, power, endurance and parts, as in the grid file.",
        examples=[{"medium": "flash", "capacity_gb": 960, "price": 400}],
    )
    newest: datetime | None = Field(description="The slot of the newest run that counts.")
    good_for: list[str] = Field(
        description="Uses with at least 80 % of the rate of the best area.", examples=[["random_read"]]
    )
    concerns: list[str] = Field(description="What is unusual.", examples=[["slower than usual"]])
    rates: list[StorageRateOut] = Field(description="The rate of each use, and its history.")
    figures: list[StorageFigureOut] = Field(description="For price, capacity, power and endurance.")
    efficiency: list[StorageEfficiencyOut] = Field(description="Against the parts of the area.")


class StorageVerdictOut(Schema):
    """What a series says about the area: the state of its sweep, and the analysis of whole passes."""

    series: str = Field(description="The name of the series.", examples=["scratch1-sweep"])
    probe: str = Field(description="Its probe.", examples=["storage_sweep"])
    computed_at: datetime = Field(description="The time of the analysis.")
    sweep: dict[str, Any] | None = Field(description="The state of the newest sweep.")
    effects: dict[str, Any] | None = Field(
        description="As `python -m forecasting effects --json` prints them; null: none, or too early."
    )
    streams: dict[str, Any] | None = Field(
        description="As `python -m forecasting sweet-spot --json` prints them; null likewise."
    )
    refusal: str | None = Field(description="Why there is no analysis of a whole sweep.")


class StorageAreaDetails(StorageAreaOut):
    """A storage area with the analyses of its sweeps."""

    verdicts: list[StorageVerdictOut] = Field(description="The analyses of its series.")


class StorageAreaList(ListOut):
    """A page of storage areas, by name."""

    areas: list[StorageAreaOut] = Field(description="A page of storage areas.")


@router.get(
    "/storage",
    response=StorageAreaList,
    operation_id="list_storage",
    summary="List storage areas, their health and rates",
)
def list_storage(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """Resources with storage in the grid file, and those that a storage probe has measured, by name."""

    def named(after: str, at_most: int) -> list[dict[str, Any]]:
        later = [area for area in storage_areas(request.user) if area.resource.name > after]
        return [_shown(area) for area in later[:at_most]]

    return list_named(query, named, StorageAreaList, key="name")


@router.get(
    "/storage/{resource}",
    response=StorageAreaDetails,
    operation_id="show_storage",
    openapi_extra=declare(errors={404: ["unknown_resource"]}),
    summary="Show a storage area and the analyses of its sweeps",
)
def show_storage(request: HttpRequest, resource: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list, with the effects of parameters and the best number of streams."""
    areas = {area.resource.name: area for area in storage_areas(request.user)}
    if resource not in areas:
        raise Refused(404, "unknown_resource", f"there is no storage area {resource!r} that you may see")
    verdicts = series_verdicts(request.user, areas[resource].resource)
    content = {**_shown(areas[resource]), "verdicts": [_verdict(verdict) for verdict in verdicts]}
    return show_item(query, content, StorageAreaDetails)


def _shown(area: StorageArea) -> dict[str, Any]:
    return {
        "name": area.resource.name,
        "site": area.resource.site.name,
        "storage": area.storage,
        "newest": area.newest,
        "good_for": [use.name for use in area.good_for],
        "concerns": area.concerns,
        "rates": [
            {
                "use": use.use.name,
                "unit": use.use.unit,
                "series": use.series,
                "settings": use.settings,
                "share_of_best": use.share,
                **use.history,
            }
            for use in area.uses
        ],
        "figures": [
            {"name": figure.name, "value": figure.value, "unit": figure.unit} for figure in area.figures
        ],
        "efficiency": [
            {
                "use": each.use,
                "share": each.share,
                "parts": each.parts,
                "part_rate": each.part_rate,
                "part": each.part,
            }
            for each in area.efficiencies
        ],
    }


def _verdict(verdict: SeriesVerdict) -> dict[str, Any]:
    analysis = {key: verdict.content.get(key) for key in ("sweep", "effects", "streams", "refusal")}
    return {
        "series": verdict.series,
        "probe": verdict.probe,
        "computed_at": verdict.computed_at,
        **analysis,
    }
