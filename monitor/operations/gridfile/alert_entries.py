"""The alert rules of a grid file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from monitor.analysis.alerts import conditions, reporter_conditions
from monitor.core.yamlfile.entry import Entry, Title

if TYPE_CHECKING:
    from monitor.analysis.alerts.conditions.base import AlertCondition
    from monitor.analysis.alerts.reporter_conditions.base import ReporterCondition

MOST_REPEAT_SECONDS = 31_536_000  # a year
CONDITIONS = (*conditions.names(), *reporter_conditions.names())


class Watches(Entry):
    """The series, or the remote reporters, that a rule watches: all, or those that it names.

    The condition of the rule decides which of the two it watches.
    """

    everything: bool = Field(False, description="Watch every series, or every remote reporter.")
    suites: list[str] = Field([], description="Watch all series of these suites.", examples=[["main"]])
    sites: list[str] = Field(
        [],
        description="Watch all series that are bound to a resource of these sites, or the reporters at them.",
    )
    series: list[str] = Field([], description="Watch these series.")
    probes: list[str] = Field([], description="Watch all series of these probes.")
    reporters: list[str] = Field([], description="Watch the series of these reporters, or the reporters.")

    @property
    def is_named(self) -> bool:
        return bool(self.suites or self.sites or self.series or self.probes or self.reporters)

    @model_validator(mode="after")
    def _everything_or_names(self) -> Self:
        if self.everything and self.is_named:
            raise ValueError("expected either everything or names, not both")
        return self


class ChannelEntry(BaseModel):
    """A notification channel: a kind, and the options of that kind (docs/alerts.md)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: str = Field(description="Kind of channel, such as `email`; docs/alerts.md lists kinds and options.")


class _AlertRuleBase(Entry):
    title: Title = Field("", description="Name shown on pages.")
    enabled: bool = Field(
        True, description="Whether the rule is evaluated; disabling it closes its open alerts."
    )
    severity: Literal["minor", "major", "critical"] = Field(
        "major", description="How much its alerts matter: `minor`, `major` or `critical`; messages say so."
    )
    watches: Watches = Field(
        description="Series or reporters that the rule watches.", examples=[{"suites": ["main"]}]
    )


def _threshold(condition: type[AlertCondition] | type[ReporterCondition]) -> Any:
    bounds = Field(ge=condition.least, le=condition.most)
    return (Annotated[int, bounds] | None, Field(None, description=condition.description))


if TYPE_CHECKING:
    _WithConditions = _AlertRuleBase
else:  # one key per file in the folders conditions/ and reporter_conditions/ of monitor/analysis/alerts/
    _WithConditions = create_model(
        "_WithConditions",
        __base__=_AlertRuleBase,
        **{kind: _threshold(conditions.load(kind)) for kind in conditions.names()},
        **{kind: _threshold(reporter_conditions.load(kind)) for kind in reporter_conditions.names()},
    )


class AlertRuleEntry(_WithConditions):
    """An alert rule: exactly one condition for series or reporters, and the channels to notify."""

    notify: list[ChannelEntry] = Field(
        [],
        description="Channels to notify when an alert opens or closes.",
        examples=[[{"kind": "log"}]],
    )

    repeat_seconds: Annotated[int, Field(ge=300, le=MOST_REPEAT_SECONDS)] | None = Field(
        None,
        description="Notify again of an open alert without acknowledgement, after this long; default: never.",
    )

    @property
    def conditions(self) -> dict[str, int]:
        """The thresholds of the conditions that are set, by kind."""
        thresholds = {kind: getattr(self, kind) for kind in CONDITIONS}
        return {kind: threshold for kind, threshold in thresholds.items() if threshold is not None}

    @model_validator(mode="after")
    def _has_one_condition_and_watches(self) -> Self:
        if len(self.conditions) != 1:
            number = "several conditions" if self.conditions else "no condition"
            raise ValueError(f"it has {number}; expected one of {', '.join(CONDITIONS)}")
        if self.enabled and not (self.watches.everything or self.watches.is_named):
            expected = "expected everything: true, or some of suites, sites, series, probes and reporters"
            raise ValueError(f"it watches nothing; {expected}")
        (condition,) = self.conditions
        of_series = self.watches.suites or self.watches.series or self.watches.probes
        if condition in reporter_conditions.names() and of_series:
            raise ValueError(f"{condition} judges reporters; expected everything: true, sites or reporters")
        return self
