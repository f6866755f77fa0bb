"""A rule watches what its author may see now, and is suspended while its author may not keep it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitor.analysis.alerts.deliver import deliver_due
from monitor.analysis.alerts.evaluate import evaluate
from monitor.analysis.alerts.evaluate_reporters import evaluate_reporters
from monitor.analysis.alerts.group import group_alerts
from monitor.analysis.alerts.replay import watched_series
from monitor.analysis.incidents import actions as incident_actions
from monitor.core.egress.backoff import FIRST_PAUSE
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import (
    Alert,
    AlertRule,
    AuditEvent,
    Binding,
    Incident,
    Notification,
    Recheck,
    Resource,
    Run,
    Series,
    Site,
    Suite,
)
from monitor.models.alert import CHANGE_RULES
from monitor.models.author import by, rights_of
from monitor.models.incident import MONITOR
from monitor.models.role import UserRole, forget_roles
from monitor.models.run import State
from monitor.models.visibility import sees_all
from monitor.operations.gridfile.define import AlertDefinition, define
from reporters.report import run_id
from tests.monitor import reporter_rows
from tests.monitor.conftest import NOON
from tests.monitor.receivers import ACCEPTS, REFUSES, Hook
from tests.monitor.web.pages import builders

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db


def failing(name: str, site: str = "own", suite: str = "open") -> Series:
    series = builders.circle(name, [builders.site(site)], suite=builders.suite(suite))
    for number in range(2):
        slot = NOON - number * MINUTE
        ended = {"due_at": slot, "ended_at": slot, "state": State.FAILED, "reason": f"{name} is full"}
        Run.objects.create(id=run_id(name, slot), series=series, slot=slot, **ended)
    return series


def hide(suite: str) -> Group:
    few, _ = Group.objects.get_or_create(name="few")
    builders.suite(suite).viewers.add(few)
    return few


def site_admin(name: str = "bob", site: str = "own") -> User:
    builders.site(site)
    user = builders.user(name)
    roles.grant(user, Grant(UserRole.SITE_ADMIN, site))
    return user


def operator(name: str = "ada") -> User:
    user = builders.user(name)
    roles.grant(user, Grant(UserRole.OPERATOR))
    return user


def rule(name: str, author: User | None, *channels: object, site: str = "own", **fields: object) -> AlertRule:
    made = AlertRule.objects.create(
        name=name,
        notify=list(channels),
        **{"condition": "failures_in_row", "threshold": 2, **by(author), **fields},
    )
    if not made.everything:
        made.sites.add(Site.objects.get(name=site))
    return made


def opened(name: str) -> set[str]:
    return set(Alert.objects.open().filter(rule__name=name).values_list("series__name", flat=True))


def test_evaluation_opens_alerts_for_what_the_preview_shows() -> None:
    bob, ada = site_admin(), operator()
    failing("seen")
    failing("secret", suite="closed")
    hide("closed")
    for name, author in (("of-bob", bob), ("of-ada", ada), ("of-the-file", None)):
        rule(name, author)
    evaluate(NOON)
    for name, author in (("of-bob", bob), ("of-ada", ada)):
        preview = watched_series(Series.objects.visible_to(author), {"sites": ["own"]})
        assert opened(name) == set(preview.values_list("name", flat=True))
    assert (opened("of-bob"), opened("of-the-file")) == ({"seen"}, {"seen", "secret"})
    for message in Alert.objects.filter(rule__name="of-bob").values_list("text", flat=True):
        assert "secret" not in message


Change = Callable[[User, Series], object]


def lose_role(author: User, _: Series) -> None:
    roles.revoke(author, Grant(UserRole.SITE_ADMIN, "own"))


def disable(author: User, _: Series) -> None:
    User.objects.filter(pk=author.pk).update(is_active=False)


def delete(author: User, _: Series) -> None:
    author.delete()


def hide_suite(_: User, series: Series) -> None:
    hide("open")


def move_to_hidden_suite(_: User, series: Series) -> None:
    hide("closed")
    Series.objects.filter(pk=series.pk).update(suite=Suite.objects.get(name="closed"))


CHANGES: dict[Change, str] = {
    lose_role: "the roles of its author, bob, do not permit it",
    disable: "the account of its author, bob, is disabled, or has no role granted here",
    delete: "its author, bob, or the identity by which it was saved, was deleted",
    hide_suite: "",
    move_to_hidden_suite: "",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_lost_right_closes_alerts_at_the_next_tick_and_no_message_goes_out(
    server: Hook, change: Change
) -> None:
    bob, series = site_admin(), failing("seen")
    rule("of-bob", bob, server.channel)
    evaluate(NOON)
    server.mode, told_at = REFUSES, NOON + 2 * MINUTE
    group_alerts(told_at)
    deliver_due(told_at)
    assert Notification.objects.pending().count() == 1  # it is retried
    change(bob, series)
    evaluate(told_at + MINUTE)
    alert, kept = Alert.objects.get(), AlertRule.objects.get()
    assert (alert.closed_text, alert.closed_at) == ("no longer watched", told_at + MINUTE)
    assert kept.suspended == CHANGES[change]
    assert not Notification.objects.pending().exists()
    assert Notification.objects.get().withheld == "the author of its rule may not see it any more"
    events = AuditEvent.objects.values_list("channel", "action", "target")
    assert list(events) == ([("service", "alert rule suspended", "of-bob")] if kept.suspended else [])


@pytest.mark.parametrize("change", CHANGES)
def test_a_message_that_waits_is_withheld_without_a_tick(server: Hook, change: Change) -> None:
    """Delivery asks for the present rights; the evaluation may come later, or a worker be stopped."""
    bob, series = site_admin(), failing("seen")
    rule("of-bob", bob, server.channel)
    evaluate(NOON)
    server.mode, told_at = REFUSES, NOON + 2 * MINUTE
    group_alerts(told_at)
    deliver_due(told_at)
    assert Notification.objects.get().attempts == 1
    server.mode = ACCEPTS
    change(bob, series)
    deliver_due(told_at + FIRST_PAUSE)
    assert server.received() == []
    assert Notification.objects.get().withheld.startswith(("the author of its rule", "its rule is suspended"))


def test_a_rule_resumes_when_the_right_returns_or_another_user_saves_it() -> None:
    bob = site_admin()
    failing("seen")
    made = rule("of-bob", bob)
    roles.revoke(bob, Grant(UserRole.SITE_ADMIN, "own"))
    evaluate(NOON)
    assert opened("of-bob") == set()
    roles.grant(bob, Grant(UserRole.SITE_ADMIN, "own"))
    evaluate(NOON + MINUTE)
    assert opened("of-bob") == {"seen"}
    bob.delete()
    evaluate(NOON + 2 * MINUTE)
    assert opened("of-bob") == set()
    AlertRule.objects.filter(pk=made.pk).update(**by(operator()))
    evaluate(NOON + 3 * MINUTE)
    assert opened("of-bob") == {"seen"}
    actions = AuditEvent.objects.order_by("pk").values_list("action", flat=True)
    verbs = [action.removeprefix("alert rule ") for action in actions]
    assert verbs == ["suspended", "resumed", "suspended"]  # the adoption is in the event of its request


def test_a_grid_file_takes_over_the_rules_that_it_changes() -> None:
    made = rule("of-bob", site_admin())
    for threshold, author in ((2, "bob"), (5, "")):
        watches = {"sites": ("own",)}
        same = AlertDefinition("of-bob", watches=watches, condition="failures_in_row", threshold=threshold)
        define([], [], [same])
        made.refresh_from_db()
        assert (made.threshold, made.author_name, made.author is None) == (threshold, author, not author)


def test_a_series_that_moves_is_evaluated_at_the_next_tick() -> None:
    """Into what a rule watches, and out of it: by suite, by resource, and by the site of a resource."""
    series = failing("seen", site="elsewhere")
    builders.site("own")
    rule("all", None)
    evaluate(NOON)
    assert opened("all") == set()
    Binding.objects.filter(series=series).update(resource=Resource.objects.get(name="own-login"))
    evaluate(NOON + MINUTE)
    assert opened("all") == {"seen"}
    Resource.objects.filter(name="own-login").update(site=Site.objects.get(name="elsewhere"))
    evaluate(NOON + 2 * MINUTE)
    assert opened("all") == set()
    Recheck.objects.all().delete()
    Series.objects.update(suite=builders.suite("other"))
    assert set(Recheck.objects.values_list("series", flat=True)) == {series.pk}


def test_a_message_counts_the_alerts_that_its_author_may_see(server: Hook) -> None:
    """Of one incident, on one channel that an operator's rule uses, too."""
    bob = site_admin()
    for name in ("seen", "secret"):
        failing(name, suite="closed" if name == "secret" else "open")
    hide("closed")
    rule("of-bob", bob, server.channel)
    rule("of-the-file", None, server.channel, threshold=1)
    evaluate(NOON)
    incident = Incident.objects.create(since=NOON, opened_at=NOON, kind="at", name="own")
    Alert.objects.update(incident=incident)
    Notification.objects.filter(alert__rule__name="of-bob").update(due_at=NOON, attempts=1)
    Notification.objects.filter(alert__rule__name="of-the-file").update(due_at=NOON + timedelta(days=1))
    deliver_due(NOON)
    assert [(data["rule"], data["open_alerts"]) for data in server.data()] == [("of-bob", 2)]


def test_a_suspicion_is_told_only_to_channels_whose_author_sees_every_site(server: Hook) -> None:
    builders.site("own")
    own = {**server.channel, "url": f"http://{server.address}/bob"}
    rule("of-bob", site_admin(), own)
    rule("of-ada", operator(), server.channel)
    Incident.objects.create(since=NOON, opened_at=NOON, kind=MONITOR)
    group_alerts(NOON)
    told = Notification.objects.filter(incident__isnull=False).values_list("channel", flat=True)
    assert [channel["url"] for channel in told] == [server.channel["url"]] * len(told)


def test_a_silence_ends_when_the_incident_grows_beyond_the_sites_of_its_user(server: Hook) -> None:
    bob = site_admin()
    series, other = failing("seen"), failing("far", site="other")
    rule("all", None, server.channel, everything=True)
    evaluate(NOON)
    incident = Incident.objects.create(since=NOON, opened_at=NOON, kind="at", name="own")
    Alert.objects.filter(series=series).update(incident=incident)
    incident_actions.silence(incident.pk, NOON + timedelta(hours=1), "", bob.username, NOON)
    Notification.objects.filter(alert__series=series).update(due_at=NOON)
    deliver_due(NOON)
    assert "seen" not in [data["series"] for data in server.data()]
    Alert.objects.filter(series=other).update(incident=incident)
    deliver_due(NOON + FIRST_PAUSE)
    assert "seen" in [data["series"] for data in server.data()]


def test_a_rule_of_a_site_admin_does_not_replace_a_default_rule() -> None:
    """A default rule watches the reporters of every site."""
    for name in ("own", "other"):
        agent = reporter_rows.enrolled(name, NOON - timedelta(hours=2), site=name)
        reporter_rows.status(agent, NOON - timedelta(hours=1))
    rule("of-bob", site_admin(), condition="unseen_seconds", threshold=60)
    evaluate_reporters(NOON)
    names = Alert.objects.open().filter(rule__condition="unseen_seconds")
    assert set(names.values_list("rule__name", "reporter__name")) == {
        ("of-bob", "own"),
        ("default-unseen-seconds", "own"),
        ("default-unseen-seconds", "other"),
    }


def users() -> list[User]:
    """Return a user of each role, some of which may view the closed suite, and one with a permission."""
    made = [builders.user("none"), site_admin(), site_admin("eve", "other"), operator()]
    roles.grant(builders.user("root"), Grant(UserRole.ADMINISTRATOR))
    made += [User.objects.get(username="root"), builders.user("gone", is_active=False)]
    permitted, member = builders.user("permitted"), builders.user("member")
    permitted.user_permissions.add(Permission.objects.get(codename="change_alertrule"))
    member.groups.add(hide("closed"))
    for user in [*made, permitted, member]:
        forget_roles(user)
    return list(User.objects.order_by("pk"))


def test_the_rights_of_many_authors_are_those_of_each_user() -> None:
    for number, suite in enumerate(("open", "closed", "shut")):
        failing(f"series-{number}", suite=suite)
    builders.suite("shut").viewers.add(Group.objects.create(name="nobody"))
    everyone = users()
    rights = rights_of([(user.pk, None) for user in everyone], CHANGE_RULES)
    for user in everyone:
        found = rights[user.pk, None]
        hidden = Suite.objects.exclude(pk__in=Suite.objects.visible_to(user))
        expected = set() if not user.is_active else set(hidden.values_list("pk", flat=True))
        assert (found.sees_all, found.has(CHANGE_RULES)) == (sees_all(user), user.has_perm(CHANGE_RULES)), (
            user
        )
        assert not user.is_active or found.hidden_suites == expected, user
        own = Site.objects.manageable_by(user, CHANGE_RULES)
        assert user.has_perm(CHANGE_RULES) or found.own_sites >= set(own.values_list("pk", flat=True)), user


def test_a_rule_is_suspended_if_its_author_may_not_change_it() -> None:
    """The statement for all rules agrees with ``manageable_by`` of each author."""
    failing("seen")
    for user in users():
        for kind in ("at-own", "at-other", "everything", "of-suite", "nothing"):
            made = rule(f"{kind}-{user.username}", user, everything=kind == "everything", site="own")
            if kind != "at-own":
                made.sites.set(Site.objects.filter(name="other") if kind == "at-other" else [])
            if kind == "of-suite":
                made.suites.set(Suite.objects.all())
    evaluate(NOON)
    for made in AlertRule.objects.exclude(author=None).select_related("author"):
        assert made.author is not None
        is_kept = AlertRule.objects.manageable_by(made.author).filter(pk=made.pk).exists()
        assert bool(made.suspended) != is_kept, made


def test_the_number_of_queries_does_not_depend_on_the_number_of_authors() -> None:
    failing("seen")
    failing("secret", suite="closed")
    hide("closed")
    counts = []
    for number in (1, 20):
        for each in range(number):
            rule(f"rule-{number}-{each}", site_admin(f"user-{number}-{each}"))
        evaluate(NOON)
        Recheck.objects.create(series=Series.objects.get(name="seen"), due_at=NOON)
        with CaptureQueriesContext(connection) as queries:
            evaluate(NOON + number * MINUTE)
        counts.append(len(queries))
    assert counts[0] == counts[1]
    assert all(opened(name) == {"seen"} for name in AlertRule.objects.values_list("name", flat=True))
