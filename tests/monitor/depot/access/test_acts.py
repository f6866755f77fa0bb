"""Acts that take effect later: with the rights that their author has then, or as a statement about the grid.

Each act meets each author and each change between the act and its effect. Each request is also sent after the
change, by a session and by a token from before it. An act that does not depend on the present rights of its
author says why, and the test asserts what follows: it shows nothing to its author, and others end it. A model
with a field that names a user fails here until the field belongs to an act, or to a record of what was done.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.postgres.fields import ArrayField
from django.db import models, transaction
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from monitor.analysis.alerts.announcements import Handling, decision_of
from monitor.analysis.alerts.deliver import deliver_due
from monitor.analysis.alerts.evaluate import evaluate
from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.analysis.alerts.group import group_alerts
from monitor.analysis.availability.refresh import refresh
from monitor.analysis.incidents import actions as incident_actions
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.webhooks import authors as webhook_authors
from monitor.analysis.webhooks.deliver import deliver_webhooks
from monitor.analysis.webhooks.enqueue import ping
from monitor.analysis.webhooks.secret_owners import variable_of
from monitor.analysis.webhooks.signature import new_secret
from monitor.depot.access import roles, tokens
from monitor.depot.access.roles import Grant
from monitor.models import (
    Alert,
    AlertRule,
    ApiToken,
    Binding,
    EnrolmentCode,
    Identity,
    Incident,
    IncidentSeries,
    Notification,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    SiteMonth,
    Suite,
    Webhook,
    WebhookDelivery,
)
from monitor.models.author import by
from monitor.models.role import UserRole, act_as, identity_of
from monitor.models.run import State
from monitor.models.token import MANAGE, OUTCOME, READ, REPORT, RUN, SCOPES
from monitor.models.webhook import DeliveryState
from monitor.runs.ledger.claim import claim_due
from monitor.web.accounts import sessions
from reporters.report import run_id
from tests.conftest import empty_tables
from tests.monitor import reporter_rows
from tests.monitor.depot.access.draws import DRAW, drawn
from tests.monitor.receivers import Hook, hook
from tests.monitor.web.pages import builders

API = "/api/v1"
HOUR = timedelta(hours=1)
OPERATORS_SECRET = "GRIDCAST_WEBHOOK_OPS"
WRONG_SECONDS = 1_234_567  # of a month, in the place of what was computed
pytestmark = pytest.mark.django_db


@dataclass
class World:
    """A series at the site *own*, which an agent watches, and another site; the series fails.

    *receiver* gets the messages of rules and webhooks.
    """

    now: datetime
    series: Series
    reporter: Reporter
    own: Site
    other: Site
    hidden: Suite
    receiver: Hook = field(repr=False)
    few: Group = field(repr=False)


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One state for all cases; each case is rolled back."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as environment, hook() as receiver:
        for variable in (OPERATORS_SECRET, variable_of("own"), variable_of("other")):
            environment.setenv(variable, new_secret())
        now = timezone.now().replace(microsecond=0)
        own, other = builders.site("own"), builders.site("other")
        series = builders.circle("ring", [own])
        for minutes in (2, 1):
            slot = now - timedelta(minutes=minutes)
            ended = {"due_at": slot, "ended_at": slot, "state": State.FAILED, "reason": "disk full"}
            Run.objects.create(id=run_id("ring", slot), series=series, slot=slot, **ended)
        agent = reporter_rows.enrolled("agent", now - HOUR, site="own")
        reporter_rows.status(agent, now - HOUR)
        builders.circle("watched", [own], reporter=agent, schedule="")
        builders.series("told", {"host": [own]}, probe="reported", schedule="", reporter=agent)
        refresh(now)
        few = Group.objects.create(name="few")
        hidden = builders.suite("hidden")
        hidden.viewers.add(few)
        yield World(now, series, agent, own.site, other.site, hidden, receiver, few)
        empty_tables()


# Authors: each role alone, at a site, of a suite; and a user with permissions of its own, without a role.


BY_PROVIDER = " by the provider"


def _author(world: World, kind: str) -> User:
    user = User.objects.create_user("ada")
    if kind.endswith(BY_PROVIDER):
        act_as(user, _identity(world, user, kind.removesuffix(BY_PROVIDER)).pk)
    elif kind == "permitted":
        names = ["change_alertrule", "run_series", "manage_webhooks"]
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
    elif kind.startswith("site_admin"):
        site = world.other if kind == "site_admin elsewhere" else world.own
        roles.grant(user, Grant(UserRole.SITE_ADMIN, site.name))
    elif kind != "no role":
        roles.grant(user, Grant(UserRole(kind.split(maxsplit=1)[0])))
    if kind.endswith("of the few"):
        user.groups.add(world.few)
    return user


def _identity(world: World, user: User, role: str) -> Identity:
    account = SocialAccount.objects.create(user=user, provider="oidc", uid=f"subject of {user}")
    return Identity.objects.create(
        user=user,
        account=account,
        subject=account.uid,
        roles=[f"site_admin:{world.own}" if role == "site_admin" else role],
        verified_at=world.now,
        valid_until=world.now + HOUR,
    )


AUTHORS = (
    *("no role", "viewer", "viewer of the few", "scheduler"),
    *("site_admin", "site_admin of the few", "site_admin elsewhere"),
    *("operator", "administrator", "permitted"),
    *(f"{role}{BY_PROVIDER}" for role in UserRole),
)
SEES_ALL = {"operator", "administrator", f"operator{BY_PROVIDER}", f"administrator{BY_PROVIDER}"}
AT_SITE = {"site_admin", "site_admin of the few", f"site_admin{BY_PROVIDER}"}


# Changes between the act and its effect.


def _nothing(world: World, author: User) -> None:
    pass


def _lost_role(world: World, author: User) -> None:
    roles.grant(User.objects.create_user("root"), Grant(UserRole.ADMINISTRATOR))
    for granted in roles.grants_of(author):
        roles.revoke(author, granted)
    author.user_permissions.clear()
    author.identities.update(roles=["viewer"])


def _disabled(world: World, author: User) -> None:
    User.objects.filter(pk=author.pk).update(is_active=False)


def _deleted(world: World, author: User) -> None:
    author.delete()


def _suspended(world: World, author: User) -> None:
    author.identities.update(suspended="none of the groups has a role", suspended_at=world.now)


def _identity_deleted(world: World, author: User) -> None:
    for identity in author.identities.all():
        identity.account.delete()


def _suspended_then_identity_deleted(world: World, author: User) -> None:
    _suspended(world, author)
    _identity_deleted(world, author)


def _suspended_then_deleted(world: World, author: User) -> None:
    _suspended(world, author)
    author.delete()


def _unseen(world: World, author: User) -> None:
    author.identities.update(valid_until=timezone.now() - HOUR)


def _other_identity_refused(world: World, author: User) -> None:
    account = SocialAccount.objects.create(user=author, provider="oidc", uid="another")
    times = {"verified_at": world.now, "valid_until": world.now + HOUR}
    Identity.objects.create(user=author, account=account, subject="another", suspended="no group", **times)


def _suite_hidden(world: World, author: User) -> None:
    for suite in Suite.objects.all():
        suite.viewers.add(world.few)


def _suite_of_its_role(world: World, author: User) -> None:
    """The viewers of all suites but the hidden one are the users with a role of the author, else the few."""
    brought = author.identities.values_list("roles", flat=True)
    names = {grant.role.value for grant in roles.grants_of(author)}
    names |= {name.partition(":")[0] for names in brought for name in names}
    viewers = Group.objects.filter(name__in=names) if names else [world.few]
    for suite in Suite.objects.exclude(pk=world.hidden.pk):
        suite.viewers.add(*viewers)


def _moved_to_hidden_suite(world: World, author: User) -> None:
    Series.objects.update(suite=world.hidden)


def _moved_to_other_site(world: World, author: User) -> None:
    Binding.objects.update(resource=Resource.objects.get(name="other-login"))
    Reporter.objects.filter(pk=world.reporter.pk).update(site=world.other)


CHANGES: Mapping[str, Callable[[World, User], None]] = {
    "nothing": _nothing,
    "lost role": _lost_role,
    "disabled": _disabled,
    "deleted": _deleted,
    "suspended": _suspended,
    "identity deleted": _identity_deleted,
    "suspended, then identity deleted": _suspended_then_identity_deleted,
    "suspended, then deleted": _suspended_then_deleted,
    "no login for long": _unseen,
    "other identity refused": _other_identity_refused,
    "suite hidden": _suite_hidden,
    "suite of its role": _suite_of_its_role,
    "moved to hidden suite": _moved_to_hidden_suite,
    "moved to other site": _moved_to_other_site,
}
GONE = {"disabled", "deleted", "suspended, then deleted"}
DISMISSED = {"suspended", "no login for long", "suspended, then identity deleted", "suspended, then deleted"}
HIDDEN = {"suite hidden", "moved to hidden suite"}


def _is_kept_off(author: str, change: str) -> bool:
    """Return whether *change* leaves the author no way in."""
    return change in GONE or (author.endswith(BY_PROVIDER) and change in DISMISSED | {"identity deleted"})


def _lost_rights(author: str, change: str) -> bool:
    if (author, change) in {("no role", "other identity refused"), ("permitted", "other identity refused")}:
        return True  # nothing is granted here, and the provider names no role
    return change == "lost role" or _is_kept_off(author, change)


def _sees(author: str, change: str) -> bool:
    """Return whether an author that kept its roles may see the series after *change*."""
    if author in {"no role", "permitted"} and change == "suite of its role":
        return False
    return author in SEES_ALL or author.endswith("of the few") or change not in HIDDEN


# Acts: how each is done, whether it has an effect, and when it should have one.


def _rule(world: World, author: User, condition: str = "failures_in_row", threshold: int = 1) -> AlertRule:
    fields = {"condition": condition, "threshold": threshold, "notify": [{"kind": "log"}]}
    rule = AlertRule.objects.create(name="rule", **fields, **by(author))
    rule.sites.add(world.own)
    return rule


def _reporter_rule(world: World, author: User) -> AlertRule:
    return _rule(world, author, "unseen_seconds", 60)


def _opens(world: World, _rule: AlertRule) -> bool:
    evaluate(world.now)
    evaluate_reporters(world.now)
    return Alert.objects.open().filter(rule__name="rule").exists()


def _message(world: World, author: User) -> Notification:
    alert = Alert.objects.create(
        rule=_rule(world, author), series=world.series, since=world.now, opened_at=world.now, text="x"
    )
    return Notification.objects.create(
        alert=alert, event="opened", channel={"kind": "log"}, due_at=world.now, attempts=1
    )


def _is_sent(world: World, message: Notification) -> bool:
    deliver_due(world.now)
    message.refresh_from_db()
    assert bool(message.withheld) == (message.sent_at is None)
    return message.sent_at is not None


def _incident(world: World) -> Notification:
    """Return the message, of a rule that sees everything, about an incident of the series."""
    incident = Incident.objects.create(since=world.now, opened_at=world.now, kind="series", name="ring")
    IncidentSeries.objects.create(incident=incident, series=world.series, since=world.now)
    rule = AlertRule.objects.create(name="all", everything=True, condition="failures_in_row", threshold=1)
    alert = Alert.objects.create(
        rule=rule, series=world.series, since=world.now, opened_at=world.now, text="x", incident=incident
    )
    return Notification.objects.create(alert=alert, event="opened", channel={"kind": "log"}, due_at=world.now)


def _silence(world: World, author: User) -> Notification:
    message, until = _incident(world), world.now + HOUR
    incident_actions.silence(Incident.objects.get().pk, until, "", author.username, world.now)
    return message


def _acknowledgement(world: World, author: User) -> Notification:
    message = _incident(world)
    incident_actions.acknowledge(Incident.objects.get().pk, author.username, world.now)
    return message


def _alert_acknowledgement(world: World, author: User) -> Alert:
    """Return an alert, of a rule that sees everything and repeats its messages, that was told an hour ago."""
    channel, then = {"kind": "log"}, world.now - HOUR
    rule = AlertRule.objects.create(
        name="all",
        everything=True,
        condition="failures_in_row",
        threshold=1,
        repeat_seconds=600,
        notify=[channel],
    )
    alert = Alert.objects.create(rule=rule, series=world.series, since=then, opened_at=then, text="x")
    Notification.objects.create(alert=alert, event="opened", channel=channel, sent_at=then)
    Alert.objects.acknowledge(author.username, then)
    return alert


def _is_not_repeated(world: World, alert: Alert) -> bool:
    group_alerts(world.now)
    alert.refresh_from_db()
    is_repeated = alert.notifications.filter(event="repeated").exists()
    assert is_repeated == (alert.acknowledged_at is None)
    return not is_repeated


def _is_not_sent(world: World, message: Notification) -> bool:
    stored = Notification.objects.select_related("alert__incident", "alert__rule").get(pk=message.pk)
    return decision_of(stored, world.now).handling != Handling.SEND


def _webhook(world: World, author: User) -> WebhookDelivery:
    hook = Webhook.objects.create(
        name="hook", url="https://x.example.org/", events=["run.ended"], created_at=world.now, **by(author)
    )
    return ping(hook, world.now)


def _is_due(world: World, delivery: WebhookDelivery) -> bool:
    webhook_authors.judge_authors(world.now)
    return WebhookDelivery.objects.due(world.now).filter(pk=delivery.pk).exists()


def _signed_message(variable: str, world: World, author: User) -> Notification:
    """Return a message of a rule of *author* that is signed with the secret in *variable*."""
    rule, times = _rule(world, author), {"since": world.now, "opened_at": world.now}
    channel = {**world.receiver.channel, "secret_variable": variable}
    alert = Alert.objects.create(rule=rule, series=world.series, text="x", **times)
    return Notification.objects.create(alert=alert, event="opened", channel=channel, due_at=world.now)


def _is_signed(world: World, message: Notification) -> bool:
    world.receiver.requests.clear()
    is_sent = _is_sent(world, message)
    return _has_signature(world, is_sent=is_sent)


def _has_signature(world: World, *, is_sent: bool) -> bool:
    """Return *is_sent*: a message is signed, or it is not sent."""
    signatures = [request.get("webhook-signature", "") for request, _ in world.receiver.requests]
    assert [bool(signature) for signature in signatures] == [True] * is_sent
    return is_sent


def _signed_webhook(world: World, author: User) -> WebhookDelivery:
    delivery = _webhook(world, author)
    signs = {"url": world.receiver.channel["url"], "secret_variable": OPERATORS_SECRET}
    Webhook.objects.filter(pk=delivery.webhook_id).update(**signs)
    return delivery


def _webhook_signs(world: World, delivery: WebhookDelivery) -> bool:
    world.receiver.requests.clear()
    deliver_webhooks(world.now)
    delivery.refresh_from_db()
    return _has_signature(world, is_sent=delivery.state == DeliveryState.DELIVERED)


def _enrolment_code(world: World, author: User) -> EnrolmentCode:
    times = {"created_at": world.now, "expires_at": world.now + HOUR}
    return EnrolmentCode.objects.create(reporter=world.reporter, sha256="x", created_by=author, **times)


def _enrols(_world: World, code: EnrolmentCode) -> bool:
    stored = EnrolmentCode.objects.filter(pk=code.pk).first()
    return stored is not None and stored.is_permitted()


def _token(
    world: World, author: User, scopes: tuple[str, ...] = SCOPES, *, site: Site | None = None
) -> Client:
    """Return a program with a token of *author*."""
    reporter = world.reporter if REPORT in scopes else None
    return _program(ApiToken.objects.issue(author, "x", list(scopes), reporter, site=site))


def _token_at_site(world: World, author: User) -> Client:
    return _token(world, author, (READ, RUN, MANAGE), site=world.own)


def _program(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def _rotated(world: World, author: User) -> Client:
    """Return a program with the token that replaced the first one before the change."""
    text = ApiToken.objects.issue(author, "x", [READ])
    issued = tokens.rotate(ApiToken.objects.with_text(text), timezone.now(), caller=None)
    return _program(issued.text)


def _rotates(scope: str, _world: World, client: Client) -> bool:
    """Return whether the token is replaced by one with *scope*, which works."""
    answer = _asked(client, "POST", "/tokens/self/rotate", {})
    if answer.status_code != 201:
        return False
    new = _program(answer.json()["token"])
    scopes = new.get(f"{API}/me").json()["token"]["scopes"]
    assert scopes == answer.json()["scopes"]
    return scope in scopes


def _session_beside_token(world: World, author: User) -> tuple[Client, int]:
    """Return a session, and the key of a token of the same identity."""
    text = ApiToken.objects.issue(author, "x", [READ])
    return _session(world, author), ApiToken.objects.with_text(text).pk


def _session_rotates(_world: World, held: tuple[Client, int]) -> bool:
    browser, key = held
    return _is_permitted(_asked(browser, "POST", f"/tokens/{key}/rotate", {}))


def _session(world: World, author: User) -> Client:
    browser = Client()
    browser.force_login(author)
    session = browser.session
    session[sessions.IDENTITY_KEY] = identity_of(author)
    session.save()
    return browser


def _reports(_world: World, client: Client) -> bool:
    return client.post(f"{API}/series/told/ping").status_code == 200


def _reads_series(_world: World, client: Client) -> bool:
    return client.get(f"{API}/series/ring").status_code == 200


def _exports(_world: World, client: Client) -> bool:
    return client.get(f"{API}/series/ring/export").status_code == 200


def _opens_report(world: World, browser: Client) -> bool:
    """Return whether the report of the month names the site."""
    return f"site,{world.own.name}," in browser.get(f"/reports/{world.now:%Y-%m}/report.csv").content.decode()


# Requests, by a session or a token, before the change or after it.

Values = Callable[[World], Mapping[str, Any]]


@dataclass(frozen=True)
class Asked:
    """A request of the API: *path* and *values* are about the site *own*, or about what is there."""

    method: str
    path: str
    values: Values

    def send(self, world: World, client: Client) -> Any:
        return _asked(client, self.method, self.path, self.values(world))


def _asked(client: Client, method: str, path: str, values: Mapping[str, Any] | None = None) -> Any:
    body = "" if values is None else json.dumps(values)
    return client.generic(method, API + path, body, content_type="application/json")


def _is_permitted(answer: Any) -> bool:
    """Return whether the request was carried out; a name in a body that is not seen is refused as unknown."""
    is_unknown = answer.status_code == 422 and "there is no" in answer.json()["detail"]
    is_refused = is_unknown or answer.status_code in {401, 403, 404}
    assert is_refused or answer.status_code in {200, 201, 202}, (answer.status_code, answer.content)
    return bool(answer.status_code < 300)


def _until(world: World) -> str:
    return (world.now + 9 * HOUR).isoformat()


ASKED: Mapping[str, Asked] = {
    "alert rule": Asked(
        "PUT",
        "/grid/alerts/new",
        lambda world: {"entry": {"failures_in_row": 9, "watches": {"sites": [world.own.name]}}},
    ),
    "webhook": Asked(
        "PUT", "/webhooks/new", lambda _: {"url": "https://x.example.org/new", "events": ["site.down"]}
    ),
    "silence": Asked("PUT", "/incidents/{incident}/silence", lambda world: {"until": _until(world)}),
    "acknowledgement": Asked("POST", "/incidents/{incident}/acknowledge", lambda _: {}),
    "acknowledgement of an alert": Asked("POST", "/alerts/{alert}/acknowledge", lambda _: {}),
    "enrolment code": Asked("POST", "/reporters/agent/codes", lambda _: {}),
    "hold": Asked(
        "POST", "/holds", lambda _: {"kind": "series", "name": "ring", "mode": "pause", "reason": "x"}
    ),
    "maintenance window": Asked(
        "POST",
        "/maintenance",
        lambda world: {
            "name": "window",
            "sites": [world.own.name],
            "reason": "x",
            "starts_at": world.now.isoformat(),
            "ends_at": _until(world),
        },
    ),
    "signature": Asked(
        "POST",
        "/failures/signatures",
        lambda _: {
            "name": "jam",
            "title": "Jam",
            "category": "resource",
            "severity": "major",
            "patterns": ["jammed"],
        },
    ),
    "ping key": Asked("POST", "/series/told/ping-keys", lambda _: {"name": "x"}),
    "requested run": Asked("POST", "/series/ring/runs", lambda _: {}),
    "recomputation": Asked(
        "POST",
        "/availability/recomputations",
        lambda world: {"sites": [world.own.name], "month": f"{world.now:%Y-%m}", "reason": "x"},
    ),
}


def _with_incident(path: str) -> str:
    """Return *path* with the incident and the alert that the world has now."""
    keys = {"incident": Incident.objects, "alert": Alert.objects}
    return path.format(**{noun: rows.get().pk for noun, rows in keys.items() if f"{{{noun}}}" in path})


def _later(asked: Asked, held_by: Callable[[World, User], Client], world: World, author: User) -> Client:
    """Return the client that sends the request after the change."""
    if "{" in asked.path:
        _incident(world)
    return held_by(world, author)


def _is_done(asked: Asked, world: World, client: Client) -> bool:
    return _is_permitted(_asked(client, asked.method, _with_incident(asked.path), asked.values(world)))


# What stays, although its author may not do it any more.


class Lasting(StrEnum):
    """Why an act goes on without the right to do it again."""

    STATEMENT = "a statement about the grid, on which others rely: any user with the right may end it"
    OF_SERIES = (
        "it belongs to the series: the program that has it reads nothing with it, and others revoke it"
    )
    DECIDED = "decided with the request: it does not act for its author any more"


@dataclass(frozen=True)
class Made:
    """What the author has made by a request; *shown* is empty if nothing was made."""

    browser: Client
    answer: Any

    @property
    def is_permitted(self) -> bool:
        return _is_permitted(self.answer)


def _makes(asked: str, world: World, author: User) -> Made:
    browser = _session(world, author)
    return Made(browser, ASKED[asked].send(world, browser))


def _keeps(world: World, series: Series) -> bool:
    """Return whether a run of *series* that is due now is not started."""
    slot = timezone.now() - timedelta(seconds=1) * next(_SECONDS)
    run = Run.objects.create(id=run_id(series.name, slot), series=series, slot=slot, due_at=slot)
    claim_due(timezone.now())
    run.refresh_from_db()
    return run.state != State.CLAIMED


_SECONDS = itertools.count(1)  # every run has a slot of its own


def _holds(world: World, _made: Made) -> bool:
    return _keeps(world, world.series)


def _is_open(world: World, _made: Made) -> bool:
    """Ask for a series that stays at the site."""
    name = f"fresh-{next(_SECONDS)}"
    return _keeps(world, builders.circle(name, [Resource.objects.get(name="own-login")]))


def _classifies(world: World, _made: Made) -> bool:
    slot = world.now - timedelta(minutes=30) - timedelta(seconds=1) * next(_SECONDS)
    ended = {"due_at": slot, "ended_at": slot, "state": State.FAILED, "reason": "it is jammed"}
    run = Run.objects.create(id=run_id("ring", slot), series=world.series, slot=slot, **ended)
    classify_runs(world.now)
    run.refresh_from_db()
    assert run.signature is not None
    return run.signature.name == "jam"


def _pings(_world: World, made: Made) -> bool:
    answer = Client().get(f"{API}/ping/{made.answer.json().get('key', 'none')}?rid={next(_SECONDS)}")
    if answer.status_code == 404:
        return False
    return Run.objects.filter(pk=answer.json()["run"], state=State.PASSED, series__name="told").exists()


def _will_run(_world: World, made: Made) -> bool:
    claims = {claim.run_id.hex for claim in claim_due(timezone.now())}
    return made.is_permitted and made.answer.json()["id"].replace("-", "") in claims


def _recomputes(world: World, author: User) -> Made:
    """Recompute a month whose stored figures are wrong."""
    SiteMonth.objects.of_sites().filter(site=world.own).update(down_seconds=WRONG_SECONDS)
    return _makes("recomputation", world, author)


def _has_right_figures(world: World, _made: Made) -> bool:
    return not SiteMonth.objects.of_sites().filter(site=world.own, down_seconds=WRONG_SECONDS).exists()


@dataclass(frozen=True)
class End:
    """The request by which an operator ends what an author made."""

    method: str
    path: str
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Act:
    """An act, its effect, and whether the effect is expected by author and change.

    Attributes:
        fields: the fields of models that name its author.
        lasting: why the effect does not depend on the rights that the author has now; None: it does.
        end: how another user ends the effect; None: nothing ends it.
        shown: the path at which the API shows what was made; empty: it does not.
        is_shown: whether the author, who made it, reads there.
    """

    do: Callable[[World, User], Any]
    has_effect: Callable[[World, Any], bool]
    expected: Callable[[str, str], bool]
    fields: tuple[str, ...] = ()
    lasting: Lasting | None = None
    end: End | None = None
    shown: str = ""
    is_shown: Callable[[str, str], bool] = lambda _author, _change: True


def _while_managed(author: str, change: str) -> bool:
    """Everywhere, or at the present site of the series, for what the author sees."""
    at = AT_SITE if change != "moved to other site" else {"site_admin elsewhere"}
    return (
        author in SEES_ALL | {"permitted"} | at and not _lost_rights(author, change) and _sees(author, change)
    )


def _watches_series(author: str, change: str) -> bool:
    """The rule names the site."""
    return _while_managed(author, change) and change != "moved to other site"


def _is_told(author: str, change: str) -> bool:
    """A message about a series that the rule watched before it moved."""
    may_keep = author in SEES_ALL | AT_SITE | {"permitted"}
    return may_keep and not _lost_rights(author, change) and _sees(author, change)


def _watches_reporter(author: str, change: str) -> bool:
    may_see = author in SEES_ALL | AT_SITE or (author == "permitted" and _sees(author, change))
    return may_see and not _lost_rights(author, change) and change != "moved to other site"


def _tells_all(author: str, change: str) -> bool:
    return author in SEES_ALL and not _lost_rights(author, change)


def _enrols_while_managed(author: str, change: str) -> bool:
    at = AT_SITE if change != "moved to other site" else {"site_admin elsewhere"}
    return author in SEES_ALL | at and not _lost_rights(author, change)


def _reports_while_managed(author: str, change: str) -> bool:
    return _enrols_while_managed(author, change) and _sees(author, change)


def _reads(author: str, change: str) -> bool:
    """Of an open suite, every admitted user whose only role is not ``scheduler``."""
    if change == "lost role":
        return True
    if _lost_rights(author, change):
        return False
    return _sees(author, change) and not author.startswith("scheduler")


def _configuration(author: str, change: str) -> bool:
    return change == "lost role" or (not _lost_rights(author, change) and _sees(author, change))


def _reads_site(author: str, change: str) -> bool:
    """A site is seen by its series, and by its site admins."""
    if author in AT_SITE:
        return _is_admitted(author, change)
    return _reads(author, change) and (change != "moved to other site" or author in SEES_ALL)


def _changes_rules_at_site(author: str, change: str) -> bool:
    """At the site, wherever its series went: of the site admins, and of others who see it."""
    is_seen = author in AT_SITE or _has_series_at_site(author, change)
    return author in SEES_ALL | AT_SITE | {"permitted"} and is_seen and not _lost_rights(author, change)


def _is_admitted(author: str, change: str) -> bool:
    return change == "lost role" or not _lost_rights(author, change)


def _has_series_at_site(author: str, change: str) -> bool:
    return author in SEES_ALL or (_sees(author, change) and change != "moved to other site")


def _reads_availability(author: str, change: str) -> bool:
    """Of a site, while the author sees a series there: its site admin too."""
    return _reads(author, change) and _has_series_at_site(author, change)


def _recomputes_availability(author: str, change: str) -> bool:
    may_run = author in SEES_ALL | AT_SITE | {"permitted"} and not _lost_rights(author, change)
    return may_run and _has_series_at_site(author, change)


def _changes_windows(author: str, change: str) -> bool:
    return author in SEES_ALL | AT_SITE and not _lost_rights(author, change)


def _uses_secret_of_operators(author: str, change: str) -> bool:
    return author in SEES_ALL | {"permitted"} and _is_told(author, change)


def _in_force(*authors: str) -> Callable[[str, str], bool]:
    return lambda author, change: author in authors and not _lost_rights(author, change)


def _once(expected: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Of what lasts: the author had the right when it was made."""
    return lambda author, _change: expected(author, "nothing")


def _holds_unless_suspended(author: str, change: str) -> bool:
    """A hold stays when its author goes, but not after the identity by which it was made was suspended."""
    is_suspended = author.endswith(BY_PROVIDER) and change in DISMISSED
    return _while_managed(author, "nothing") and not is_suspended


SITE_ADMINS = {*AT_SITE, "site_admin elsewhere"}
ROTATED: Mapping[str, Callable[[str, str], bool]] = {
    READ: _is_admitted,
    RUN: _in_force(*SEES_ALL, *SITE_ADMINS, "permitted"),
    REPORT: _enrols_while_managed,
    OUTCOME: _in_force(*SEES_ALL, "scheduler", f"scheduler{BY_PROVIDER}"),
    MANAGE: _in_force(*SEES_ALL, *SITE_ADMINS, "permitted"),
}
EXPECTED_OF: Mapping[str, Callable[[str, str], bool]] = {
    "alert rule": _changes_rules_at_site,
    "webhook": _in_force(*SEES_ALL, "permitted"),
    "silence": _while_managed,
    "acknowledgement": _while_managed,
    "acknowledgement of an alert": _while_managed,
    "enrolment code": _enrols_while_managed,
    "hold": _while_managed,
    "maintenance window": _changes_windows,
    "signature": _tells_all,
    "ping key": _reports_while_managed,
    "requested run": _while_managed,
    "recomputation": _recomputes_availability,
}
HELD_BY: Mapping[str, Callable[[World, User], Client]] = {"session": _session, "token": _token}


def _requests() -> Iterator[tuple[str, Act]]:
    """Yield what is asked for after the change, with what the author held before it."""
    for (name, asked), (way, held_by) in itertools.product(ASKED.items(), HELD_BY.items()):
        do, is_done = partial(_later, asked, held_by), partial(_is_done, asked)
        yield f"request of {name} by {way}", Act(do, is_done, EXPECTED_OF[name])


ACTS: Mapping[str, Act] = {
    "alert rule": Act(_rule, _opens, _watches_series, ("AlertRule.author", "AlertRule.author_name")),
    "alert rule about reporters": Act(_reporter_rule, _opens, _watches_reporter),
    "message that waits": Act(_message, _is_sent, _is_told),
    "message signed with a secret of operators": Act(
        partial(_signed_message, OPERATORS_SECRET), _is_signed, _uses_secret_of_operators
    ),
    "message signed with the secret of the site": Act(
        partial(_signed_message, variable_of("own")), _is_signed, _is_told
    ),
    "message signed with the secret of another site": Act(
        partial(_signed_message, variable_of("other")), _is_signed, _uses_secret_of_operators
    ),
    "silence": Act(_silence, _is_not_sent, _while_managed, ("Incident.silenced_by",)),
    "acknowledgement": Act(
        _acknowledgement,
        _is_not_sent,
        _while_managed,
        ("Incident.acknowledged_by",),
    ),
    "acknowledgement of an alert": Act(
        _alert_acknowledgement, _is_not_repeated, _while_managed, ("Alert.acknowledged_by",)
    ),
    "webhook": Act(_webhook, _is_due, _tells_all, ("Webhook.author", "Webhook.author_name")),
    "webhook that signs": Act(_signed_webhook, _webhook_signs, _tells_all),
    "enrolment code": Act(_enrolment_code, _enrols, _enrols_while_managed, ("EnrolmentCode.created_by",)),
    "token": Act(partial(_token, scopes=(READ,)), _reads_series, _configuration, ("ApiToken.user",)),
    "token that reports": Act(partial(_token, scopes=(REPORT,)), _reports, _reports_while_managed),
    "token that exports": Act(partial(_token, scopes=(READ,)), _exports, _reads),
    "token that replaced another": Act(_rotated, _reads_series, _configuration),
    "session that exports": Act(_session, _exports, _reads),
    "session that opens a report": Act(_session, _opens_report, _reads_availability),
    "rotation by session": Act(_session_beside_token, _session_rotates, _is_admitted),
    **{
        f"rotation that keeps the scope {scope}": Act(_token, partial(_rotates, scope), expected)
        for scope, expected in ROTATED.items()
    },
    "rotation that keeps the scope run at the site": Act(
        _token_at_site, partial(_rotates, RUN), _in_force(*SEES_ALL, *AT_SITE, "permitted")
    ),
    **dict(_requests()),
    "hold": Act(
        partial(_makes, "hold"),
        _holds,
        _holds_unless_suspended,
        ("Hold.who",),
        lasting=Lasting.STATEMENT,
        end=End("POST", "/holds/series/ring/resume", {"reason": "x"}),
        shown="/holds/{id}",
        is_shown=_reads,
    ),
    "maintenance window": Act(
        partial(_makes, "maintenance window"),
        _is_open,
        _once(_changes_windows),
        lasting=Lasting.STATEMENT,
        end=End("POST", "/maintenance/window/end", {"reason": "x"}),
        shown="/maintenance/window",
        is_shown=_reads_site,
    ),
    "signature": Act(
        partial(_makes, "signature"),
        _classifies,
        _once(_tells_all),
        ("OwnSignature.changed_by",),
        lasting=Lasting.STATEMENT,
        end=End("POST", "/failures/signatures/jam/withdraw", {"version": 1}),
        shown="/failures/own-signatures/jam",
        is_shown=_is_admitted,
    ),
    "ping key": Act(
        partial(_makes, "ping key"),
        _pings,
        _once(_reports_while_managed),
        ("PingKey.created_by",),
        lasting=Lasting.OF_SERIES,
        end=End("POST", "/series/told/ping-keys/{id}/revoke"),
        shown="/series/told/ping-keys/{id}",
        is_shown=_reports_while_managed,
    ),
    "requested run": Act(
        partial(_makes, "requested run"),
        _will_run,
        _once(_while_managed),
        ("Run.trigger",),
        lasting=Lasting.DECIDED,
        shown="/runs/{id}",
        is_shown=_reads,
    ),
    "recomputation": Act(
        _recomputes,
        _has_right_figures,
        _once(_recomputes_availability),
        ("Recomputation.requester",),
        lasting=Lasting.DECIDED,
        shown="/availability/recomputations/{id}",
        is_shown=_reads_availability,
    ),
}

# Fields that name a user and belong to no act, by the reason.
RECORDS: Mapping[str, set[str]] = {
    "who did something that was complete then: nothing follows from it": {
        *("AuditEvent.user", "IncidentEvent.user", "SignatureChange.user", "MaintenanceChange.who"),
        *("Hold.ended_by", "Incident.resolved_by", "PingKey.revoked_by", "ReporterKey.revoked_by"),
        *("Incident.assigned_to", "Webhook.created_by", "Outcome.consumer"),
    },
    "decided with the request; the worker only carries it out": {"SeriesDeletion.requested_by"},
    "rights, no acts": {"SiteAdministrator.user", "Identity.user", "DoorOpening.user"},
    "of logins": {
        *("AccountMail.user", "EndedSessions.user", "PasskeyChallenge.user", "PasskeyHandle.user"),
        "SecondFactorTerm.user",
    },
}
_NAMES_A_USER = re.compile(
    r"(?:^|_)(?:by|authors?|author_name|users?|usernames?|who|whom|requesters?|consumers?|owners?|creators?"
    r"|trigger|assigned_to|assignees?)$"
)
_TEXTS = (models.CharField, models.TextField, models.JSONField, ArrayField)


def _is_of_users(column: Any) -> bool:
    """Return whether *column* refers to users, or has the name of what names users in a text or in JSON."""
    if column.is_relation:
        return not column.auto_created and column.related_model is User
    return isinstance(column, _TEXTS) and _NAMES_A_USER.search(column.name) is not None


def _fields_of_users() -> Iterator[str]:
    for model in apps.get_app_config("monitor").get_models():
        for each in model._meta.get_fields():
            if _is_of_users(each):
                yield f"{model.__name__}.{each.name}"


def test_each_field_that_names_a_user_belongs_to_an_act_or_to_a_record() -> None:
    named = {name for act in ACTS.values() for name in act.fields}.union(*RECORDS.values())
    assert set(_fields_of_users()) ^ named == set()


@pytest.mark.parametrize(
    ("column", "is_found"),
    [
        (models.CharField(name="closed_by", max_length=9), True),
        (models.SlugField(name="author"), True),
        (models.TextField(name="requested_by"), True),
        (models.JSONField(name="owners"), True),
        (ArrayField(models.TextField(), name="users"), True),
        (models.ForeignKey(User, models.CASCADE, name="chief"), True),
        (models.ManyToManyField(User, name="chiefs"), True),
        (models.TextField(name="reason"), False),
        (models.DateTimeField(name="seen_by"), False),
    ],
)
def test_a_field_that_may_name_users_is_found_whatever_its_type(column: Any, is_found: bool) -> None:
    assert _is_of_users(column) == is_found


@pytest.mark.parametrize(("act", "author"), drawn(list(ACTS), AUTHORS, every=len(AUTHORS)))
def test_an_act_has_the_present_rights_of_its_author(world: World, act: str, author: str) -> None:
    row, wrong = ACTS[act], []
    for change, happens in CHANGES.items():
        with transaction.atomic():
            user = _author(world, author)
            done = row.do(world, user)
            happens(world, user)
            has_effect = row.has_effect(world, done)
            if has_effect != row.expected(author, change):
                wrong.append(f"{change}: {has_effect}")
            if isinstance(done, Made) and done.is_permitted:
                wrong += _read_by_author(row, done, author, change)
                wrong += _not_ended(world, row, done, change) if has_effect else []
            transaction.set_rollback(True)
    assert wrong == [], DRAW


def _read_by_author(row: Act, made: Made, author: str, change: str) -> Iterator[str]:
    """Yield a difference between what the author reads of what it made, and what it may read now."""
    is_shown = made.browser.get(API + row.shown.format(**made.answer.json())).status_code == 200
    if is_shown != row.is_shown(author, change):
        yield f"{change}: shown: {is_shown}"


def _not_ended(world: World, row: Act, made: Made, change: str) -> Iterator[str]:
    """Yield that what the author made goes on after an operator has ended it."""
    if row.end is None:
        return
    other = User.objects.create_user("eve")
    roles.grant(other, Grant(UserRole.OPERATOR))
    path = row.end.path.format(**made.answer.json())
    answer = _asked(_session(world, other), row.end.method, path, row.end.values)
    if row.has_effect(world, made):
        yield f"{change}: not ended: {answer.status_code} {answer.content!r}"


def test_what_lasts_says_why_and_how_it_ends() -> None:
    lasting = {name: act for name, act in ACTS.items() if act.lasting is not None}
    assert {name for name, act in lasting.items() if not act.shown} == set()
    assert {
        name for name, act in lasting.items() if act.lasting != Lasting.DECIDED and act.end is None
    } == set()
    assert {name for name, act in ACTS.items() if act.lasting is None and (act.end or act.shown)} == set()
