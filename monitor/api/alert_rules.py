"""Alert rules: what they watch, their conditions and thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Prefetch
from ninja import Query, Router, Schema
from pydantic import Field

from monitor.api.http.declare import declare
from monitor.api.http.filters import chosen
from monitor.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.api.http.problems import Refused
from monitor.api.http.schemas import NameFilter
from monitor.models import AlertRule, Reporter, Series, Site, Suite
from monitor.models.failure_signature import Severity

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models.alert import AlertRuleQuerySet

router = Router(tags=["alerts"])


class AlertRuleOut(Schema):
    """A rule that opens alerts. Suites, sites, series and reporters are those that you may see."""

    name: str = Field(description="The name of the rule.", examples=["main-failures"])
    title: str = Field(description="The title on pages; may be empty.", examples=["Failures of main"])
    is_enabled: bool = Field(description="Whether the rule is evaluated.", examples=[True])
    is_default: bool = Field(
        description="Whether the service made it; it applies while no other rule has its condition.",
        examples=[False],
    )
    condition: str = Field(description="The kind of condition.", examples=["failures_in_row"])
    threshold: int = Field(
        description="The runs, records or seconds from which on an alert opens.", examples=[3]
    )
    everything: bool = Field(description="Whether it watches every series or reporter.", examples=[False])
    suites: list[str] = Field(description="The suites whose series it watches.", examples=[["main"]])
    sites: list[str] = Field(description="The sites whose series or reporters it watches.", examples=[[]])
    series: list[str] = Field(description="The series that it watches.", examples=[["gather-main"]])
    probes: list[str] = Field(description="The probes whose series it watches.", examples=[["gather"]])
    reporters: list[str] = Field(description="The reporters it watches, or their series.", examples=[[]])
    severity: Severity = Field(description="How much its alerts matter.", examples=["major"])
    repeat_seconds: int | None = Field(
        description="After how long channels are told again of an open alert; null: never.", examples=[3600]
    )
    channels: list[str] = Field(
        description="The kinds of channels that are notified; addresses are not shown.", examples=[["email"]]
    )


class AlertRuleList(ListOut):
    """A page of alert rules, by name."""

    alert_rules: list[AlertRuleOut]


class AlertRuleQuery(Page):
    """The rules to list."""

    is_enabled: bool | None = Field(
        None, description="Only rules that are evaluated, or only others.", examples=[True]
    )
    condition: NameFilter = Field("", description="A kind of condition.", examples=["failures_in_row"])


@router.get(
    "/alert-rules", response=AlertRuleList, operation_id="list_alert_rules", summary="List alert rules"
)
def list_alert_rules(request: HttpRequest, query: Query[AlertRuleQuery]) -> HttpResponse:
    """Rules that watch everything, or a thing that you may see. Grid files and *Settings* define rules."""
    lookups = chosen(enabled=query.is_enabled, condition=query.condition)
    return list_rows(query, _visible(request).filter(**lookups), AlertRuleList, order=["name"], show=_shown)


@router.get(
    "/alert-rules/{rule}",
    response=AlertRuleOut,
    operation_id="show_alert_rule",
    openapi_extra=declare(errors={404: ["unknown_alert_rule"]}),
    summary="Show an alert rule",
)
def show_alert_rule(request: HttpRequest, rule: str, query: Query[Sparse]) -> HttpResponse:
    """As in the list."""
    found = _visible(request).filter(name=rule).first()
    if found is None:
        raise Refused(404, "unknown_alert_rule", f"there is no alert rule {rule!r} that you may see")
    return show_item(query, _shown(found), AlertRuleOut)


def _visible(request: HttpRequest) -> AlertRuleQuerySet:
    user = request.user
    return AlertRule.objects.visible_to(user).prefetch_related(
        Prefetch("suites", Suite.objects.visible_to(user)),
        Prefetch("sites", Site.objects.visible_to(user)),
        Prefetch("series", Series.objects.visible_to(user)),
        Prefetch("reporters", Reporter.objects.manageable_or_visible_to(user)),
    )


def _shown(rule: AlertRule) -> dict[str, Any]:
    watched = {
        noun: [row.name for row in getattr(rule, noun).all()]
        for noun in ("suites", "sites", "series", "reporters")
    }
    return {
        "name": rule.name,
        "title": rule.title,
        "is_enabled": rule.enabled,
        "is_default": rule.is_default,
        "condition": rule.condition,
        "threshold": rule.threshold,
        "everything": rule.everything,
        "probes": rule.probes,
        "severity": rule.severity,
        "repeat_seconds": rule.repeat_seconds,
        "channels": [str(channel.get("kind", "")) for channel in rule.notify],
        **watched,
    }
