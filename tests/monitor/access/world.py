"""One state of the depot for the table of access: two sites with one of everything, and every identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.access import roles
from monitor.access.roles import Grant
from monitor.availability.refresh import refresh
from monitor.failures import own_signatures
from monitor.forecasts.issue import issue
from monitor.models import (
    Alert,
    AlertRule,
    ApiToken,
    Hold,
    Incident,
    IncidentSeries,
    MaintenanceWindow,
    Metric,
    OwnSignature,
    PingKey,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    Webhook,
)
from monitor.models.role import UserRole
from monitor.models.token import SCOPES
from monitor.webhooks.enqueue import ping
from tests.monitor import reporter_rows
from tests.monitor.pages import builders

OWN, OTHER = "own", "other"  # the sites; the site admin manages the first
PLACES = (OWN, OTHER)


@dataclass(frozen=True)
class Identity:
    """A caller: *role* is None if no valid account is behind it, *scopes* is None with a session."""

    name: str
    role: UserRole | None
    client: Client
    scopes: frozenset[str] | None = None
    bound_to: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def is_program(self) -> bool:
        return "HTTP_AUTHORIZATION" in self.client.defaults


@dataclass
class World:
    """What requests name, by site; *tokens* are those that requests name, by user."""

    now: datetime
    series: dict[str, Series] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    reporters: dict[str, Reporter] = field(default_factory=dict)
    alerts: dict[str, Alert] = field(default_factory=dict)
    incidents: dict[str, Incident] = field(default_factory=dict)
    forecasts: dict[str, int] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    windows: dict[str, MaintenanceWindow] = field(default_factory=dict)
    reported: dict[str, Series] = field(default_factory=dict)
    ping_keys: dict[str, tuple[PingKey, str]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    delivery: int = 0
    identities: list[Identity] = field(default_factory=list)


def build() -> World:
    world = World(timezone.now().replace(microsecond=0))
    for place in PLACES:
        _site(world, place)
    refresh(world.now)
    signature = {"title": "Jam", "category": "resource", "severity": "major", "patterns": ["jammed"]}
    own_signatures.accept("jam", signature, "chief", world.now)
    hook = Webhook.objects.create(
        name="hook",
        url="https://hooks.example.org/",
        events=["run.ended"],
        enabled=False,
        created_at=world.now,
        created_by="chief",
    )
    world.delivery = ping(hook, 1, world.now).pk
    _sessions(world)
    _tokens(world)
    return world


def _site(world: World, place: str) -> None:
    now = world.now
    site = Site.objects.create(name=place)
    ways = {"shell": {"kind": "local"}, "transfer": {"kind": "local"}, "batch": {"kind": "fork"}}
    resources = [
        Resource.objects.create(
            name=f"{place}-{number}", site=site, scratch="/scratch", storage={"medium": "disk"}, **ways
        )
        for number in range(2)
    ]
    series = world.series[place] = builders.circle(f"{place}-ring", resources)
    runs = [builders.passed(series, now - timedelta(minutes=minutes)) for minutes in (5, 4, 3, 2)]
    world.runs[place] = runs[-1]
    metric = Metric.objects.get(segment__series=series, name="total.seconds")
    world.forecasts[place] = issue(metric, now).pk
    world.reporters[place] = reporter_rows.enrolled(f"{place}-agent", now, site=place)
    builders.circle(f"{place}-remote", resources, reporter=world.reporters[place])
    rule = AlertRule.objects.create(name=f"{place}-rule", condition="failures_in_row", threshold=1)
    rule.series.add(series)
    own_rule = AlertRule.objects.create(
        name=f"{place}-site-rule", condition="failures_in_row", threshold=100, notify=[{"kind": "log"}]
    )
    own_rule.sites.add(site)
    incident = Incident.objects.create(since=now, opened_at=now, kind="series", name=series.name)
    IncidentSeries.objects.create(incident=incident, series=series, since=now)
    world.incidents[place] = incident
    world.alerts[place] = Alert.objects.create(
        rule=rule, series=series, since=now, opened_at=now, text="x", incident=incident
    )
    hour = timedelta(hours=1)
    world.holds[place] = Hold.objects.create(
        kind="series", name=series.name, mode="pause", who="chief", why="x", began_at=now - hour
    )
    window = MaintenanceWindow.objects.create(
        name=f"{place}-window", starts_at=now + hour, ends_at=now + 2 * hour
    )
    window.sites.add(site)
    world.windows[place] = window
    world.reported[place] = builders.series(
        f"{place}-reported",
        {"host": resources[:1]},
        probe="reported",
        schedule="",
        reporter=world.reporters[place],
    )
    world.ping_keys[place] = PingKey.objects.issue(world.reported[place], name="x", who="chief", now=now)


def _sessions(world: World) -> None:
    for role in UserRole:
        user = builders.user(role.value, password=builders.PASSWORD)
        granted = Grant(role, OWN if role == UserRole.SITE_ADMIN else None)
        roles.grant(user, granted)
        world.identities.append(Identity(f"session of {role.value}", role, _browser(user)))
        ApiToken.objects.issue(user, "named by requests", ["read"])
        world.tokens[role.value] = ApiToken.objects.get(user=user).pk
    gone = builders.user("gone")
    browser = _browser(gone)
    gone.is_active = False
    gone.save()
    world.identities += [
        Identity("anonymous", None, Client()),
        Identity("session of an inactive user", None, browser),
    ]


def _tokens(world: World) -> None:
    for role in UserRole:
        world.identities.append(_program(world, role, SCOPES))
    for scope in SCOPES:
        world.identities.append(_program(world, UserRole.OPERATOR, (scope,)))
    world.identities.append(_program(world, UserRole.OPERATOR, SCOPES, bound_to=OTHER))
    operator = User.objects.get(username="operator")
    for state in ("expired", "revoked"):
        text = ApiToken.objects.issue(operator, state, ["read"])
        field_name = {"expired": "expires_at", "revoked": "revoked_at"}[state]
        ApiToken.objects.filter(name=state).update(**{field_name: world.now - timedelta(days=1)})
        world.identities.append(Identity(f"{state} token", None, _with(text)))
    text = ApiToken.objects.issue(User.objects.get(username="gone"), "gone", list(SCOPES))
    world.identities += [
        Identity("token of an inactive user", None, _with(text)),
        Identity("unknown token", None, _with("gcast_" + "x" * 43)),
    ]


def _program(world: World, role: UserRole, scopes: tuple[str, ...], *, bound_to: str = "") -> Identity:
    user = User.objects.get(username=role.value)
    site = Site.objects.get(name=bound_to) if bound_to else None
    text = ApiToken.objects.issue(user, f"{role}", list(scopes), world.reporters[OWN], site=site)
    words = "all scopes" if scopes == SCOPES else f"the scope {scopes[0]}"
    name = f"token of {role.value} with {words}" + (f" at {bound_to}" if bound_to else "")
    return Identity(name, role, _with(text), frozenset(scopes), bound_to)


def _with(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def _browser(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def signature_version() -> int:
    return OwnSignature.objects.get().version
