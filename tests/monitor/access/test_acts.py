"""Acts that take effect later: with the rights that their author has then, or as a statement about the grid.

Each act meets each author and each change between the act and its effect. A model with a field that names a
user fails here until the field belongs to an act, or to a record of what was done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from allauth.socialaccount.models import SocialAccount
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.db import models, transaction
from django.test import Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from monitor.access import roles
from monitor.access.roles import Grant
from monitor.accounts import sessions
from monitor.alerts.announcements import Handling, decision_of
from monitor.alerts.deliver import deliver_due
from monitor.alerts.evaluate import evaluate
from monitor.alerts.evaluate_reporters import evaluate_reporters
from monitor.alerts.group import group_alerts
from monitor.failures import incident_actions, own_signatures
from monitor.failures.active_signatures import active_signatures
from monitor.ledger.holds import covering_holds
from monitor.ledger.run_now import run_now
from monitor.models import (
    Alert,
    AlertRule,
    ApiToken,
    Binding,
    EnrolmentCode,
    Hold,
    Identity,
    Incident,
    IncidentSeries,
    MaintenanceWindow,
    Notification,
    PingKey,
    Recomputation,
    Reporter,
    Resource,
    Run,
    Series,
    Site,
    Suite,
    Webhook,
    WebhookDelivery,
)
from monitor.models.author import by
from monitor.models.role import UserRole, act_as, identity_of
from monitor.models.run import State
from monitor.webhooks import authors as webhook_authors
from monitor.webhooks.enqueue import ping
from reporters.report import run_id
from tests.by_night import mostly_by_night
from tests.conftest import empty_tables
from tests.monitor import reporter_rows
from tests.monitor.pages import builders

HOUR = timedelta(hours=1)
pytestmark = pytest.mark.django_db


@dataclass
class World:
    """A series at the site *own*, which an agent watches, and another site; the series fails."""

    now: datetime
    series: Series
    reporter: Reporter
    own: Site
    other: Site
    hidden: Suite
    few: Group = field(repr=False)


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One state for all cases; each case is rolled back."""
    with django_db_blocker.unblock():
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
        few = Group.objects.create(name="few")
        hidden = builders.suite("hidden")
        hidden.viewers.add(few)
        yield World(now, series, agent, own.site, other.site, hidden, few)
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


def _enrolment_code(world: World, author: User) -> EnrolmentCode:
    times = {"created_at": world.now, "expires_at": world.now + HOUR}
    return EnrolmentCode.objects.create(reporter=world.reporter, sha256="x", created_by=author, **times)


def _enrols(_world: World, code: EnrolmentCode) -> bool:
    stored = EnrolmentCode.objects.filter(pk=code.pk).first()
    return stored is not None and stored.is_permitted()


def _token(world: World, author: User) -> Client:
    text = ApiToken.objects.issue(author, "x", ["read"])
    return Client(headers={"Authorization": f"Bearer {text}"})


def _sender(world: World, author: User) -> Client:
    text = ApiToken.objects.issue(author, "x", ["report"], world.reporter)
    return Client(headers={"Authorization": f"Bearer {text}"})


def _reports(_world: World, client: Client) -> bool:
    return client.post("/api/v1/series/told/ping").status_code == 200


def _session(world: World, author: User) -> Client:
    browser = Client()
    browser.force_login(author)
    session = browser.session
    session[sessions.IDENTITY_KEY] = identity_of(author)
    session.save()
    return browser


def _reads_series(_world: World, client: Client) -> bool:
    return client.get("/api/v1/series/ring").status_code == 200


def _exports(_world: World, client: Client) -> bool:
    return client.get("/api/v1/series/ring/export").status_code == 200


def _hold(world: World, author: User) -> Hold:
    return Hold.objects.create(
        kind="series",
        name="ring",
        mode="pause",
        who=author.username,
        why="x",
        began_at=world.now,
        identity_id=identity_of(author),
    )


def _holds(world: World, _hold: Hold) -> bool:
    return bool(covering_holds([world.series.pk], Hold.objects.at(world.now)))


def _window(world: World, author: User) -> MaintenanceWindow:
    window = MaintenanceWindow.objects.create(
        name="window", starts_at=world.now - HOUR, ends_at=world.now + HOUR
    )
    window.sites.add(world.own)
    return window


def _is_open(world: World, window: MaintenanceWindow) -> bool:
    return MaintenanceWindow.objects.may_be_open(world.now).at_site(world.own).filter(pk=window.pk).exists()


def _signature(world: World, author: User) -> str:
    values = {"title": "Jam", "category": "resource", "severity": "major", "patterns": ["jammed"]}
    return own_signatures.accept("jam", values, author.username, world.now).name


def _classifies(_world: World, name: str) -> bool:
    return name in {signature.name for signature in active_signatures()}


def _ping_key(world: World, author: User) -> str:
    return PingKey.objects.issue(world.series, name="x", who=author.username, now=world.now)[1]


def _pings(world: World, text: str) -> bool:
    return PingKey.objects.find(text, world.now) is not None


def _requested_run(world: World, author: User) -> Run:
    return run_now(world.series, who=author.username, now=world.now)


def _will_run(_world: World, run: Run) -> bool:
    return Run.objects.filter(pk=run.pk, state=State.EXPECTED).exists()


def _recomputation(world: World, author: User) -> Recomputation:
    day = world.now.date()
    return Recomputation.objects.create(
        requester=author.username, reason="x", at=world.now, first=day, last=day
    )


def _is_recorded(_world: World, made: Recomputation) -> bool:
    return Recomputation.objects.filter(pk=made.pk).exists()


@dataclass(frozen=True)
class Act:
    """An act, its effect, and whether the effect is expected by author and change.

    *fields* are the fields of models that name its author.
    """

    do: Callable[[World, User], Any]
    has_effect: Callable[[World, Any], bool]
    expected: Callable[[str, str], bool]
    fields: tuple[str, ...] = ()


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


def _unless_suspended(author: str, change: str) -> bool:
    """A hold stays when its author goes, but not after the identity by which it was made was suspended."""
    return not author.endswith(BY_PROVIDER) or change not in DISMISSED


def _for_good(_author: str, _change: str) -> bool:
    return True


ACTS: Mapping[str, Act] = {
    "alert rule": Act(_rule, _opens, _watches_series, ("AlertRule.author", "AlertRule.author_name")),
    "alert rule about reporters": Act(_reporter_rule, _opens, _watches_reporter),
    "message that waits": Act(_message, _is_sent, _is_told),
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
    "enrolment code": Act(_enrolment_code, _enrols, _enrols_while_managed, ("EnrolmentCode.created_by",)),
    "token": Act(_token, _reads_series, _configuration, ("ApiToken.user",)),
    "token that reports": Act(_sender, _reports, _reports_while_managed),
    "session": Act(_session, _exports, _reads),
    # Statements about the grid, which any user with the right may end.
    "hold": Act(_hold, _holds, _unless_suspended, ("Hold.who",)),
    "maintenance window": Act(_window, _is_open, _for_good),
    "signature": Act(_signature, _classifies, _for_good, ("OwnSignature.changed_by",)),
    "ping key": Act(_ping_key, _pings, _for_good, ("PingKey.created_by",)),
    "requested run": Act(_requested_run, _will_run, _for_good, ("Run.trigger",)),
    "recomputation": Act(_recomputation, _is_recorded, _for_good, ("Recomputation.requester",)),
}

# Fields that say who did something which was complete then: nothing follows from them.
RECORDS = {
    *("AuditEvent.user", "IncidentEvent.user", "SignatureChange.user", "MaintenanceChange.who"),
    *("Hold.ended_by", "Incident.resolved_by", "PingKey.revoked_by", "ReporterKey.revoked_by"),
    *("Incident.assigned_to", "Webhook.created_by", "Outcome.consumer"),
    "SeriesDeletion.requested_by",  # decided with the request; the worker only carries it out
    *("SiteAdministrator.user", "Identity.user", "DoorOpening.user"),  # rights, no acts
    *(
        "AccountMail.user",
        "EndedSessions.user",
        "PasskeyChallenge.user",
        "PasskeyHandle.user",
        "SecondFactorTerm.user",
    ),  # of logins
}
_NAMES_A_USER = re.compile(
    r"(?:^|_)(?:by|author|author_name|user|username|who|requester|consumer|owner|creator|trigger|assigned_to)$"
)


def _fields_of_users() -> Iterator[str]:
    for model in apps.get_app_config("monitor").get_models():
        for each in model._meta.get_fields():
            is_reference = isinstance(each, models.ForeignKey) and each.related_model is User
            is_name = isinstance(each, models.CharField) and _NAMES_A_USER.search(each.name)
            if is_reference or is_name:
                yield f"{model.__name__}.{each.name}"


def test_each_field_that_names_a_user_belongs_to_an_act_or_to_a_record() -> None:
    known = {name for act in ACTS.values() for name in act.fields} | RECORDS
    assert set(_fields_of_users()) ^ known == set()


@pytest.mark.parametrize(("act", "author"), mostly_by_night(list(ACTS), AUTHORS, every=5))
def test_an_act_has_the_present_rights_of_its_author(world: World, act: str, author: str) -> None:
    row, wrong = ACTS[act], []
    for change, happens in CHANGES.items():
        with transaction.atomic():
            user = _author(world, author)
            done = row.do(world, user)
            happens(world, user)
            has_effect = row.has_effect(world, done)
            transaction.set_rollback(True)
        if has_effect != row.expected(author, change):
            wrong.append(f"{change}: {has_effect}")
    assert wrong == []
