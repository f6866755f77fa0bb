"""Suspend alert rules that the present rights of their authors do not permit.

A rule acts on behalf of its author: it watches what the author may see, and is in force while the author may
keep it. A rule without an author, of a grid file or of the service, watches everything that it names.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import AnonymousUser
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, QuerySet

from monitor.analysis.alerts.channels import foreign_secrets
from monitor.depot.access.suspension import lost_right, suspend
from monitor.models import Alert, AlertRule
from monitor.models.alert import CHANGE_RULES, WATCHED
from monitor.models.author import AuthorRights, rights_of
from monitor.models.reporter import MANAGE_REPORTERS
from monitor.models.visibility import sees_all

if TYPE_CHECKING:
    from collections.abc import Mapping


def judge_authors(now: datetime) -> dict[int, AuthorRights]:
    """Suspend and resume rules; return the rights of their authors by rule, of the rules that have one.

    The number of queries depends on neither rules nor authors, but on how many are suspended or resumed.
    """
    rules = list(_authored())
    rights = rights_of([rule.acting for rule in rules], CHANGE_RULES, MANAGE_REPORTERS)
    for rule in rules:
        suspend(rule, _suspension(rule, rights.get(rule.acting)), now)
    return {rule.pk: rights[rule.acting] for rule in rules if rule.acting in rights}


def out_of_sight(alert: Alert) -> str:
    """Return why the author of the rule of *alert* gets no message about it now; empty: no reason."""
    rule = alert.rule
    if not rule.author_name:
        return ""
    author = rule.present_author()
    if author is None or not AlertRule.objects.manageable_by(author).filter(pk=rule.pk).exists():
        return f"its rule is suspended: {rule.author_name} may not keep it"[:300]
    if not Alert.objects.visible_to(author).filter(pk=alert.pk).exists():
        return f"the author of its rule, {author}, may not see {alert.subject}"[:300]
    return ""


def foreign_secret(rule: AlertRule, channel: Mapping[str, Any]) -> str:
    """Return why the author of *rule* may not have messages to *channel* signed now; empty: it may."""
    if not rule.author_name:
        return ""
    author = rule.present_author() or AnonymousUser()
    return next((f"{rule.author_name}: {why}"[:300] for _, why in foreign_secrets(channel, author)), "")


def tells_everything(channel: Mapping[str, Any]) -> bool:
    """Return whether an enabled rule notifies *channel* whose author, if it has one, sees everything.

    Its secrets have to belong to the author, too. ``suspended`` may be some seconds old: the account of the
    author is asked.
    """
    rules = AlertRule.objects.filter(enabled=True, notify__contains=[channel]).select_related("author")
    return any(
        channel in rule.notify
        and (not rule.author_name or sees_all(rule.present_author() or AnonymousUser()))
        and not foreign_secret(rule, channel)
        for rule in rules
    )


def _authored() -> QuerySet[Any]:
    at = AlertRule.sites.through.objects.filter(alertrule=OuterRef("pk")).order_by()
    rows: QuerySet[Any] = AlertRule.objects.exclude(author_name="").order_by("pk")
    rows = rows.annotate(site_keys=ArraySubquery(at.values("site_id")))
    for noun in WATCHED.keys() - {"sites"}:
        named = getattr(AlertRule, noun).through.objects.filter(alertrule=OuterRef("pk"))
        rows = rows.annotate(**{f"names_{noun}": Exists(named)})
    return rows


def _suspension(rule: Any, rights: AuthorRights | None) -> str:
    """Return why the author of *rule* may not keep it, as ``AlertRule.objects.manageable_by`` decides."""
    if rights is None or not rights.is_admitted:
        return lost_right(rule, rights)
    if rights.has(CHANGE_RULES):
        return ""
    names = (rule.names_suites, rule.names_series, rule.names_reporters, rule.everything, rule.probes)
    at_own_sites = bool(rule.site_keys) and rights.own_sites.issuperset(rule.site_keys)
    return "" if at_own_sites and not any(names) else lost_right(rule, rights)
