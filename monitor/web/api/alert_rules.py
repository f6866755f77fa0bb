"""Alert rules: what they watch, their conditions and thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from django.db.models import Prefetch
from ninja import Path, Query, Router, Schema
from pydantic import Field

from monitor.analysis.alerts import try_channel
from monitor.analysis.alerts.disabled_channels import disabled_channels
from monitor.analysis.alerts.try_channel import CannotTry
from monitor.models import AlertRule, Reporter, Series, Site, Suite
from monitor.models.alert import CHANGE_RULES
from monitor.models.failure_signature import Severity
from monitor.models.token import MANAGE
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_manageable, require_site_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.filters import chosen
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_rows, show_item
from monitor.web.api.http.permission import subject_of
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import NameFilter

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from monitor.models.alert import AlertRuleQuerySet

router = Router(tags=["alerts"])
MOST_CHANNELS = 100
ChannelNumber = Annotated[int, Path(ge=0, lt=MOST_CHANNELS)]


class DisabledChannelOut(Schema):
    """A channel that gets no more messages."""

    number: int = Field(description="Its place in `channels`, from 0.", examples=[0])
    answer: str = Field(
        description="What its receiver answered, and when.",
        examples=["https://hooks.example.org answered 410 (2026-03-01 12:00 UTC)"],
    )


class AlertRuleOut(Schema):
    """A rule that opens alerts. Suites, sites, series and reporters are those that you may see."""

    name: str = Field(description="The name of the rule.", examples=["main-failures"])
    title: str = Field(description="The title on pages; may be empty.", examples=["Failures of main"])
    is_enabled: bool = Field(description="Whether the rule is evaluated.", examples=[True])
    author: str = Field(
        description="The user with whose present rights it acts; empty: a grid file, which sees everything.",
        examples=["ada"],
    )
    suspended: str = Field(
        description="Why the rights of its author do not permit it: it is not evaluated; empty: they do.",
        examples=[""],
    )
    is_default: bool = Field(
        description="Whether the service made it; it applies while no rule of an operator has its condition.",
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
    disabled_channels: list[DisabledChannelOut] = Field(
        description="Channels whose receiver answered `410`; save the rule to enable them.", examples=[[]]
    )


class ChannelTestOut(Schema):
    """A test message to a channel of a rule. It is kept for an hour."""

    id: str = Field(description="The id of the test.", examples=["kZ3vX9p1"])
    state: Literal["pending", "delivered", "failed"] = Field(
        description="What became of the message.", examples=["delivered"]
    )
    error: str = Field(description="Why it was not delivered; empty: nothing is wrong.", examples=[""])


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
    return list_rows(
        query, _visible(request).filter(**lookups), AlertRuleList, order=["sort_name"], show=_shown
    )


def _require(request: HttpRequest) -> None:
    require_site_permission(request, CHANGE_RULES, MANAGE)


def _manageable(request: HttpRequest, rule: str, **_: object) -> AlertRule:
    found = _visible(request).filter(name=rule).first()
    if found is None:
        raise Refused(404, "unknown_alert_rule", f"there is no alert rule {rule!r} that you may see")
    require_manageable(found, AlertRule.objects.manageable_by(request.user))
    return found


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


@router.post(
    "/alert-rules/{rule}/channels/{number}/test",
    response={202: ChannelTestOut},
    operation_id="test_channel",
    openapi_extra=declare(
        scope=MANAGE,
        errors={404: ["unknown_alert_rule", "unknown_channel"], 503: ["broker_away"]},
        permission=_require,
        subject=_manageable,
    ),
    summary="Send a test message to a channel of an alert rule",
)
def test_channel(request: HttpRequest, rule: str, number: ChannelNumber) -> HttpResponse:
    """*number* counts from 0, in the order of `notify`. No alert opens; `Location` has the answer."""
    found = subject_of(request)
    if number >= len(found.notify):
        raise Refused(404, "unknown_channel", f"the rule {rule} has no channel {number}")
    try:
        key = try_channel.request(found, number)
    except CannotTry as error:
        raise Refused(503, "broker_away", str(error)) from None
    trial = ChannelTestOut(id=key, state="pending", error="")
    return created(trial, status=202, location=f"/alert-rules/{rule}/tests/{key}")


@router.get(
    "/alert-rules/{rule}/tests/{test}",
    response=ChannelTestOut,
    operation_id="show_channel_test",
    openapi_extra=declare(
        scope=MANAGE,
        errors={404: ["unknown_alert_rule", "unknown_test"]},
        permission=_require,
        subject=_manageable,
    ),
    summary="Show what became of a test message",
)
def show_channel_test(request: HttpRequest, rule: str, test: str, query: Query[Sparse]) -> HttpResponse:
    answer = try_channel.answer(test, subject_of(request))
    if answer is None:
        raise Refused(404, "unknown_test", f"there is no test {test!r} of the rule {rule}")
    return show_item(query, {"id": test, "state": answer["state"], "error": answer["error"]}, ChannelTestOut)


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
        "author": rule.author_name,
        "suspended": rule.suspended,
        "is_default": rule.is_default,
        "condition": rule.condition,
        "threshold": rule.threshold,
        "everything": rule.everything,
        "probes": rule.probes,
        "severity": rule.severity,
        "repeat_seconds": rule.repeat_seconds,
        "channels": [str(channel.get("kind", "")) for channel in rule.notify],
        "disabled_channels": [
            {"number": gone.number, "answer": gone.answer} for gone in disabled_channels([rule])
        ],
        **watched,
    }
