"""One state of the depot for the table of access: sites with one of everything, and every identity.

Every user sees two of the sites. What is at the third, and the series there, which use the first as well, see
members of a group, operators and administrators. At the last, there is nothing: it only has names.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from monitor.analysis.availability.refresh import refresh
from monitor.analysis.forecasts.issue import issue
from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.webhooks.enqueue import ping
from monitor.depot.access import roles, tokens
from monitor.depot.access.roles import Grant
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
from monitor.models.token import MANAGE, READ, REPORT, RUN, SCOPES
from tests.monitor import reporter_rows
from tests.monitor.web.accounts.logins import as_confirmed
from tests.monitor.web.pages import builders

OWN, OTHER = "own", "other"  # the sites; the site admin manages the first
HIDDEN, ABSENT = "hidden", "absent"
PLACES = (OWN, OTHER, HIDDEN)
ABSENT_ID = 2**40
GRACE = timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A caller: *role* is None if no valid account is behind it, *scopes* is None with a session.

    *user* is the name of its account.
    """

    name: str
    role: UserRole | None
    client: Client
    scopes: frozenset[str] | None = None
    bound_to: str = ""
    user: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def is_program(self) -> bool:
        return "HTTP_AUTHORIZATION" in self.client.defaults


@dataclass
class World:
    """What requests name, by site; *tokens* are those that requests name, by user; *users*, *groups* by name.

    Attributes:
        readers: identities that do not see what is hidden; the others do, or see nothing.
    """

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
    users: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    delivery: int = 0
    signature: int = 1  # its version
    identities: list[Identity] = field(default_factory=list)

    @property
    def readers(self) -> list[Identity]:
        return [each for each in self.identities if each.role in READERS and each.user not in MEMBERS]

    @property
    def members(self) -> list[Identity]:
        """Identities that see what is hidden because a group with the suite has their user."""
        return [each for each in self.identities if each.user in MEMBERS]


READERS = (UserRole.VIEWER, UserRole.SCHEDULER, UserRole.SITE_ADMIN)
MEMBERS = {f"{role} of the members": role for role in READERS}  # users who see what is hidden, too
FORMER = {
    "former operator": Grant(UserRole.OPERATOR),
    "former site_admin": Grant(UserRole.SITE_ADMIN, OWN),
}


def build() -> World:
    world = World(timezone.now().replace(microsecond=0))
    for place in PLACES:
        _site(world, place)
    add_names(world, ABSENT)
    refresh(world.now)
    signature = {"title": "Jam", "category": "resource", "severity": "major", "patterns": ["jammed"]}
    own_signatures.accept("jam", signature, "chief", world.now)
    world.signature = OwnSignature.objects.get().version
    hook = Webhook.objects.create(
        name="hook",
        url="https://hooks.example.org/",
        events=["run.ended"],
        enabled=False,
        created_at=world.now,
        created_by="chief",
    )
    world.delivery = ping(hook, world.now).pk
    _sessions(world)
    _tokens(world)
    world.users = dict(User.objects.values_list("username", "pk"))
    world.groups = dict(Group.objects.values_list("name", "pk"))
    return world


def _site(world: World, place: str) -> None:
    now = world.now
    site = Site.objects.create(name=place)
    ways = {"shell": {"kind": "local"}, "transfer": {"kind": "local"}, "batch": {"kind": "fork"}}
    sites = [site, Site.objects.get(name=OWN) if place == HIDDEN else site]
    resources = [
        Resource.objects.create(
            name=f"{place}-{number}", site=each, scratch="/scratch", storage={"medium": "disk"}, **ways
        )
        for number, each in enumerate(sites)
    ]
    in_suite = HIDDEN if place == HIDDEN else "main"
    if place == HIDDEN:
        builders.suite(HIDDEN).viewers.add(Group.objects.create(name="members"))
    series = world.series[place] = builders.circle(f"{place}-ring", resources, in_suite=in_suite)
    runs = [builders.passed(series, now - timedelta(minutes=minutes)) for minutes in (5, 4, 3, 2)]
    world.runs[place] = runs[-1]
    metric = Metric.objects.get(segment__series=series, name="total.seconds")
    world.forecasts[place] = issue(metric, now).pk
    world.reporters[place] = reporter_rows.enrolled(f"{place}-agent", now, site=place)
    builders.circle(f"{place}-remote", resources, reporter=world.reporters[place], in_suite=in_suite)
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
        in_suite=in_suite,
    )
    world.ping_keys[place] = PingKey.objects.issue(world.reported[place], name="x", who="chief", now=now)


def add_names(world: World, place: str) -> None:
    """Let requests name what is not at *place*, in the ways in which they name what is."""
    number = ABSENT_ID + len(world.series)
    nothing: Any = SimpleNamespace(pk=number)
    for numbered in (world.alerts, world.incidents, world.holds):
        numbered[place] = nothing
    named_ones: Any = (
        ("ring", world.series),
        ("reported", world.reported),
        ("window", world.windows),
        ("agent", world.reporters),
    )
    for noun, named in named_ones:
        named[place] = SimpleNamespace(name=f"{place}-{noun}")
    world.runs[place] = SimpleNamespace(pk=uuid.UUID(int=number))  # type: ignore[assignment]
    world.forecasts[place] = number
    world.ping_keys[place] = nothing, place


def _sessions(world: World) -> None:
    for role in UserRole:
        user = builders.user(role.value, password=builders.PASSWORD)
        granted = Grant(role, OWN if role == UserRole.SITE_ADMIN else None)
        roles.grant(user, granted)
        _session(world, f"session of {role.value}", user, role)
    for name, role in MEMBERS.items():
        member = builders.user(name, password=builders.PASSWORD)
        roles.grant(member, Grant(role, OWN if role == UserRole.SITE_ADMIN else None))
        member.groups.add(Group.objects.get(name="members"))
        _session(world, f"session of a {name}", member, role)
        _program(world, role, SCOPES, user=name)
    _session(
        world, "session without a role", builders.user("nobody", password=builders.PASSWORD), UserRole.VIEWER
    )
    for name, granted in FORMER.items():
        former = builders.user(name, password=builders.PASSWORD)
        roles.grant(former, granted)
        _session(world, f"session of a {name}", former, UserRole.VIEWER)
        _program(world, UserRole.VIEWER, SCOPES, user=name)
        for scopes in ((READ, RUN, REPORT, MANAGE), (RUN,), (MANAGE,)):
            _program(world, UserRole.VIEWER, scopes, bound_to=OWN, user=name)
        roles.revoke(former, granted)
    gone = builders.user("gone")
    browser = _browser(gone)
    gone.is_active = False
    gone.save()
    world.identities += [
        Identity("anonymous", None, Client()),
        Identity("session of an inactive user", None, browser),
    ]


def _tokens(world: World) -> None:
    """Add tokens, also those that are not issued.

    A site admin gets no scope ``outcome``, and a site binds the scopes ``run`` and ``manage`` only. But a
    token stays when a role of its user goes; rotated then, or issued by a token with a site, the new one has
    the site with the scopes that are left.
    """
    for role in UserRole:
        _program(world, role, SCOPES)
    for scope in SCOPES:
        for role in (UserRole.OPERATOR, UserRole.SITE_ADMIN):
            for place in ("", OWN):
                _program(world, role, (scope,), bound_to=place)
            if scope in {RUN, MANAGE}:
                _program(world, role, (READ, scope), bound_to=OWN)
    _program(world, UserRole.OPERATOR, SCOPES, bound_to=OTHER)
    _program(world, UserRole.VIEWER, SCOPES, user="nobody")
    operator = User.objects.get(username="operator")
    for state, end in (("expired", "expires_at"), ("revoked", "revoked_at")):
        text = ApiToken.objects.issue(operator, state, list(SCOPES), world.reporters[OWN])
        ApiToken.objects.filter(name=state).update(**{end: world.now - timedelta(days=1)})
        world.identities.append(Identity(f"{state} token", None, _with(text)))
    rotated: list[tuple[UserRole | None, datetime]] = [
        (UserRole.OPERATOR, world.now),
        (None, world.now - timedelta(minutes=2)),
    ]
    for valid_as, rotated_at in rotated:
        text = ApiToken.objects.issue(operator, "rotated", list(SCOPES), world.reporters[OWN])
        tokens.rotate(
            ApiToken.objects.with_text(text),
            rotated_at,
            grace=timedelta(minutes=1) if valid_as is None else GRACE,
            caller=None,
        )
        name = f"rotated token {'in' if valid_as else 'after'} its grace time"
        world.identities.append(Identity(name, valid_as, _with(text), frozenset(SCOPES), user="operator"))
    text = ApiToken.objects.issue(User.objects.get(username="gone"), "gone", list(SCOPES))
    world.identities += [
        Identity("token of an inactive user", None, _with(text)),
        Identity("unknown token", None, _with("gcast_" + "x" * 43)),
    ]


def _session(world: World, name: str, user: User, role: UserRole) -> None:
    world.identities.append(Identity(name, role, _browser(user), user=user.username))
    ApiToken.objects.issue(user, "named by requests", ["read"])
    world.tokens[user.username] = ApiToken.objects.get(user=user).pk


def _program(
    world: World, role: UserRole, scopes: tuple[str, ...], *, bound_to: str = "", user: str = ""
) -> str:
    """Add a token of *user* with *role*, by default the user of the same name; return its text."""
    user = user or role.value
    site = Site.objects.get(name=bound_to) if bound_to else None
    issued = ApiToken.objects.issue(
        User.objects.get(username=user), user, list(scopes), world.reporters[OWN], site=site
    )
    words = "all scopes" if scopes == SCOPES else f"{' and '.join(scopes)}"
    name = f"token of {user} with {words}" + (f" at {bound_to}" if bound_to else "")
    world.identities.append(Identity(name, role, _with(issued), frozenset(scopes), bound_to, user))
    return issued


def _with(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def _browser(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return as_confirmed(browser, user)
