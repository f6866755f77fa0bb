"""Open and close alerts: evaluate the conditions of rules for the series that the rules watch.

A series is evaluated when one of its rechecks is due, because a run has ended, a silence has lasted long
enough, or it has moved to another suite or site. Every series is evaluated when a rule has changed, or what
its author may see. The number of queries depends on neither rules nor authors nor series.
"""

from __future__ import annotations

import hashlib
import json
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, JSONObject

from monitor.analysis.alerts import conditions, reporter_conditions, write
from monitor.analysis.alerts.conditions.base import (
    COUNTED,
    REPORTED_HERE,
    UNREPORTED,
    AlertCondition,
    ConditionError,
    ConditionInput,
    RunOutcome,
    Verdict,
)
from monitor.analysis.alerts.rule_authors import judge_authors
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import Alert, AlertRule, Binding, Recheck, Run, Series
from monitor.models.author import AuthorRights

logger = logging.getLogger(__name__)
OLDEST_RUNS = timedelta(days=90)  # older runs open no alert

AlertKey = tuple[int, int]  # the keys of a rule and of a series


@dataclass(frozen=True)
class WatchingRule:
    """A rule and its condition; the collections are the keys of what the rule names.

    *author* has the present rights of the rule's author; None: it has none, or was deleted.
    """

    row: AlertRule
    condition: AlertCondition
    suites: Collection[int]
    sites: Collection[int]
    series: Collection[int]
    reporters: Collection[int]
    author: AuthorRights | None

    @property
    def is_in_force(self) -> bool:
        return self.row.enabled and not self.row.suspended

    @property
    def fingerprint(self) -> str:
        """A digest of what decides whether an alert is open; empty for a rule that is not in force."""
        if not self.is_in_force:
            return ""
        names = [sorted(keys) for keys in (self.suites, self.sites, self.series, self.reporters)]
        probes = sorted(self.row.probes)
        hidden = sorted(self.author.hidden_suites) if self.author else []
        deciding = [self.row.everything, *names, probes, self.row.condition, self.row.threshold, hidden]
        return hashlib.sha256(json.dumps(deciding).encode()).hexdigest()

    @property
    def is_changed(self) -> bool:
        return self.fingerprint != self.row.judged_as

    def may_see(self, series: WatchedSeries) -> bool:
        return self.author is None or series.suite not in self.author.hidden_suites

    def watches(self, series: WatchedSeries) -> bool:
        return (
            self.is_in_force
            and series.enabled
            and self.may_see(series)
            and (
                self.row.everything
                or series.suite in self.suites
                or series.key in self.series
                or series.probe in self.row.probes
                or series.reporter in self.reporters
                or any(site in self.sites for site in series.sites)
            )
        )


@dataclass(frozen=True)
class WatchedSeries:
    """A series and its recent runs; *key*, *suite*, *reporter* and *sites* are primary keys."""

    key: int
    probe: str
    suite: int
    reporter: int
    enabled: bool
    sites: Collection[int]
    runs: ConditionInput


@transaction.atomic
def evaluate(now: datetime) -> None:
    """Open and close alerts, and queue their notifications. Idempotent; a concurrent call does nothing."""
    if not try_lock_until_commit(AdvisoryLock.ALERTS):
        return
    rules = _rules(judge_authors(now))
    if not rules:  # due rechecks are dropped: a new rule evaluates every series that it watches
        _take_due_rechecks(now)
        return
    changed = [rule for rule in rules if rule.is_changed]
    keys = _take_due_rechecks(now)
    if changed:
        keys |= set(Series.objects.filter(enabled=True).values_list("pk", flat=True))
    no_longer_watched = Q(series__enabled=False) | Q(rule__in=[rule.row for rule in changed])
    rows = Alert.objects.open().filter(Q(series__in=keys) | no_longer_watched)
    open_alerts = {(alert.rule_id, alert.series_id): alert for alert in rows if alert.series_id is not None}
    keys |= {series for _, series in open_alerts}
    if keys:
        _open_and_close(rules, _watched_series(keys, rules, now), open_alerts, now)
    for rule in changed:
        rule.row.judged_as = rule.fingerprint
    AlertRule.objects.bulk_update([rule.row for rule in changed], ["judged_as"])


def _rules(authors: Mapping[int, AuthorRights]) -> list[WatchingRule]:
    """Return the rules about series in force, and those disabled or suspended since the last evaluation.

    *authors* has the rights of their authors, by rule. Rules with an unusable condition are logged and
    omitted.
    """

    def named(through: Any, noun: str) -> ArraySubquery:
        return ArraySubquery(through.filter(alertrule=OuterRef("pk")).values(f"{noun}_id"))

    about_series = AlertRule.objects.exclude(condition__in=reporter_conditions.names())
    is_in_force = Q(enabled=True, suspended="")
    rows: QuerySet[Any] = about_series.filter(is_in_force | ~Q(judged_as="")).annotate(
        suite_keys=named(AlertRule.suites.through.objects, "suite"),
        site_keys=named(AlertRule.sites.through.objects, "site"),
        series_keys=named(AlertRule.series.through.objects, "series"),
        reporter_keys=named(AlertRule.reporters.through.objects, "reporter"),
    )
    rules = []
    for row in rows:
        try:
            condition = conditions.condition(row.condition, row.threshold)
        except ConditionError as error:  # one rule must not stop the others
            logger.error("alert rule %s is ignored: %s", row.name, error)
            continue
        keys = (set(row.suite_keys), set(row.site_keys), set(row.series_keys), set(row.reporter_keys))
        rules.append(WatchingRule(row, condition, *keys, authors.get(row.pk)))
    return rules


def _take_due_rechecks(now: datetime) -> set[int]:
    """Delete the rechecks due by *now*; return the keys of their series, for the caller to evaluate."""
    due = Recheck.objects.filter(due_at__lte=now)
    with connection.cursor() as cursor:
        sql, parameters = due.values("series_id").query.sql_with_params()
        cursor.execute(
            f"DELETE FROM monitor_recheck WHERE series_id IN ({sql}) RETURNING series_id",  # noqa: S608
            parameters,
        )
        return {series for (series,) in cursor.fetchall()}


def _watched_series(
    keys: Collection[int], rules: Iterable[WatchingRule], now: datetime
) -> list[WatchedSeries]:
    """Return the series *keys* with the runs that the conditions of *rules* need, from one query."""
    most = max(rule.condition.runs_needed for rule in rules)
    runs = Run.objects.filter(series=OuterRef("pk"), slot__gt=now - OLDEST_RUNS)
    outcome = JSONObject(run="pk", slot="slot", state="state", reason="reason", due_at="due_at")
    past = runs.filter(slot__lte=now).order_by("-slot")
    reported_until = Subquery(past.filter(state__in=REPORTED_HERE).values("slot")[:1])
    first_unknown = Coalesce(OuterRef("reported_until"), now - OLDEST_RUNS)
    unreported = runs.filter(state__in=UNREPORTED, slot__gt=first_unknown)
    sites = Binding.objects.filter(series=OuterRef("pk")).order_by().values("resource__site")
    rows = (
        Series.objects.filter(pk__in=keys)
        .annotate(reported_until=reported_until)
        .values(
            "pk",
            "probe",
            "suite_id",
            "reporter_id",
            "enabled",
            sites=ArraySubquery(sites),
            newest=ArraySubquery(past.filter(state__in=COUNTED).values(outcome=outcome)[:most]),
            unreported=Subquery(unreported.order_by("slot").values(outcome=outcome)[:1]),
        )
    )
    return [
        WatchedSeries(
            row["pk"],
            row["probe"],
            row["suite_id"],
            row["reporter_id"],
            row["enabled"],
            row["sites"],
            _recent(row["newest"], row["unreported"]),
        )
        for row in rows
    ]


def _recent(newest: Sequence[dict[str, Any]], unreported: dict[str, Any] | None) -> ConditionInput:
    first = _outcome(unreported) if unreported else None
    due_at = datetime.fromisoformat(unreported["due_at"]) if unreported else None
    return ConditionInput([_outcome(run) for run in newest], first, due_at)


def _outcome(run: dict[str, Any]) -> RunOutcome:
    return RunOutcome(uuid.UUID(run["run"]), datetime.fromisoformat(run["slot"]), run["state"], run["reason"])


def _open_and_close(
    rules: Iterable[WatchingRule],
    watched: Iterable[WatchedSeries],
    open_alerts: Mapping[AlertKey, Alert],
    now: datetime,
) -> None:
    """Open and close the alerts of *watched* as *rules* demand; *open_alerts* are their open alerts."""
    opened, closed, rechecks = [], [], []
    unseen = set()
    for series in watched:
        for rule in rules:
            alert = open_alerts.get((rule.row.pk, series.key))
            if rule.watches(series):
                verdict = rule.condition.judge(series.runs, now)
            else:
                verdict = Verdict(False, "no longer watched")
            if verdict.is_open and alert is None:
                opened.append(_opened(rule, series, verdict, now))
            elif alert is not None and not verdict.is_open:
                closed.append(_closed(alert, verdict, now))
                if rule.row.suspended or not rule.may_see(series):
                    unseen.add(alert.pk)
            if verdict.recheck_at is not None:
                rechecks.append(Recheck(series_id=series.key, due_at=verdict.recheck_at))
    Recheck.objects.bulk_create(rechecks)
    write.write(opened, closed, {rule.row.pk: rule.row.notify for rule in rules}, now, unseen)


def _opened(rule: WatchingRule, series: WatchedSeries, verdict: Verdict, now: datetime) -> Alert:
    return Alert(
        rule=rule.row,
        series_id=series.key,
        since=verdict.since or now,
        opened_at=now,
        opened_by_id=verdict.run,
        text=verdict.text,
    )


def _closed(alert: Alert, verdict: Verdict, now: datetime) -> Alert:
    alert.closed_at, alert.closed_by_id, alert.closed_text = now, verdict.run, verdict.text
    return alert
