"""The availability profiles of a grid file."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema, model_validator

from monitor.analysis.availability.profiles import SELECTORS
from monitor.core.yamlfile.entry import Entry, Title, none_to_empty
from monitor.core.yamlfile.problems import quoted

ServiceName = Annotated[str, StringConstraints(pattern=r"^[-a-zA-Z0-9_]+$", min_length=1, max_length=50)]
Needs = Literal["all", "any"]


def _parse_day(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise ValueError(f"expected a day such as 2026-03-01, got {quoted(value)}") from None


Day = Annotated[date, BeforeValidator(_parse_day), WithJsonSchema({"type": "string", "format": "date"})]


class SelectionEntry(Entry):
    """Series that match each of the keys that are given: any of its names."""

    suites: list[str] = Field([], description="Series of these suites.", examples=[["main"]])
    probes: list[str] = Field([], description="Series with these probes.", examples=[["circle"]])
    series: list[str] = Field(
        [], description="Series with these names; `*` stands for any text, `?` for one character."
    )
    sites: list[str] = Field([], description="Series that are bound to a resource of these sites, too.")
    reporters: list[str] = Field([], description="Series of these reporters.")

    @property
    def selected(self) -> dict[str, list[str]]:
        """The names of each key that has names, sorted."""
        return {key: sorted(set(getattr(self, key))) for key in SELECTORS if getattr(self, key)}


class ServiceEntry(SelectionEntry):
    """A service of a site: the series that test it."""

    needs: Needs = Field("any", description="Series that have to pass: `any`, or `all` of them.")
    exclude: SelectionEntry | None = Field(None, description="Series that do not test it.")

    @model_validator(mode="after")
    def _selects_series(self) -> Self:
        if not self.selected:
            raise ValueError(f"it selects no series; expected some of {', '.join(SELECTORS)}")
        return self


class AvailabilityProfileEntry(Entry):
    """How the availability of sites is computed (docs/availability.md).

    Each change makes a new version. Days that were computed before keep theirs.
    """

    title: Title = Field("", description="Name shown on pages.")
    sites: list[str] = Field(
        [],
        description="Sites of the profile, of `sites`; default: all sites that no other profile names.",
        examples=[["sdsc"]],
    )
    valid_from: Day | None = Field(
        None,
        description="First day (UTC) of this version: `2026-03-01`; default: the day on which it is applied.",
    )
    needs: Needs = Field("all", description="Services that a site needs: `all`, or `any` of them.")
    include: SelectionEntry | None = Field(None, description="Series that count; default: all.")
    exclude: SelectionEntry | None = Field(None, description="Series that do not count.")
    services: Annotated[dict[ServiceName, ServiceEntry], BeforeValidator(none_to_empty)] = Field(
        {},
        description="Services by name; default: a service for each probe, of whose series any has to pass.",
    )
