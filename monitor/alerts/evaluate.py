"""Open and close alerts: what rules say of the series that they watch.

Only what has news is looked at: series of which a run has ended, or whose silence has lasted too long, and
all that a rule watches when it says something else than before. The number of queries depends on neither.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection, transaction
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, JSONObject

from monitor.alerts.conditions import COUNTED, HEARD, UNHEARD, Condition, Known, Outcome, Verdict, judge
from monitor.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import Alert, AlertRule, Binding, Notification, Recheck, Run, Series
from monitor.models.alert import Event

_BATCH = 1000
HORIZON = timedelta(days=90)  # what is older opens nothing

Key = tuple[int, int]  # of a rule, of a series


@dataclass(frozen=True)
class Rule:
    """A rule as it is now, with the keys of what it names."""

    row: AlertRule
    suites: Collection[int]
    sites: Collection[int]
    series: Collection[int]

    @property
    def condition(self) -> Condition:
        return Condition(self.row.failures_in_row, self.row.silent_seconds)

    @property
    def fingerprint(self) -> str:
        """Of all that decides whether something is open; empty where nothing is."""
        if not self.row.enabled:
            return ""
        names = [sorted(keys) for keys in (self.suites, self.sites, self.series)]
        said = [self.row.everything, *names, self.row.failures_in_row, self.row.silent_seconds]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()

    @property
    def is_changed(self) -> bool:
        return self.fingerprint != self.row.judged_as

    def watches(self, one: Facts) -> bool:
        return (
            self.row.enabled
            and one.enabled
            and (
                self.row.everything
                or one.suite in self.suites
                or one.series in self.series
                or any(site in self.sites for site in one.sites)
            )
        )


@dataclass(frozen=True)
class Facts:
    """A series: where it belongs, and what is known of its runs."""

    series: int
    suite: int
    enabled: bool
    sites: Collection[int]
    known: Known


@transaction.atomic
def look(now: datetime) -> None:
    """Open and close what has to be, and write down who is to be told. Doing it again changes nothing; of two
    at the same time one does it."""
    if not try_lock_until_commit(AdvisoryLock.ALERTS):
        return
    rules = _rules()
    if not rules:  # what has news is forgotten: a rule that is made looks at all it watches
        _stirred(now)
        return
    changed = [rule for rule in rules if rule.is_changed]
    keys = _stirred(now)
    if changed:
        keys |= set(Series.objects.filter(enabled=True).values_list("pk", flat=True))
    left_alone = Q(series__enabled=False) | Q(rule__in=[rule.row for rule in changed])
    found = Alert.objects.open().filter(Q(series__in=keys) | left_alone)
    open_alerts = {(one.rule_id, one.series_id): one for one in found}
    keys |= {series for _, series in open_alerts}
    if keys:
        _judge(rules, _facts(keys, rules, now), open_alerts, now)
    for rule in changed:
        rule.row.judged_as = rule.fingerprint
    AlertRule.objects.bulk_update([rule.row for rule in changed], ["judged_as"])


def _rules() -> list[Rule]:
    """Those that watch, and those that have just ceased to."""
    rows = AlertRule.objects.exclude(enabled=False, judged_as="").annotate(
        suite_keys=_named(AlertRule.suites.through.objects, "suite"),
        site_keys=_named(AlertRule.sites.through.objects, "site"),
        series_keys=_named(AlertRule.series.through.objects, "series"),
    )
    return [Rule(row, set(row.suite_keys), set(row.site_keys), set(row.series_keys)) for row in rows]


def _named(through: Any, what: str) -> ArraySubquery:
    """The keys of *what* a rule names."""
    return ArraySubquery(through.filter(alertrule=OuterRef("pk")).values(f"{what}_id"))


def _stirred(now: datetime) -> set[int]:
    """The series that have to be looked at; whoever asks has to look at them."""
    due = Recheck.objects.filter(due_at__lte=now)
    with connection.cursor() as cursor:
        sql, parameters = due.values("series_id").query.sql_with_params()
        cursor.execute(
            f"DELETE FROM monitor_recheck WHERE series_id IN ({sql}) RETURNING series_id",  # noqa: S608
            parameters,
        )
        return {series for (series,) in cursor.fetchall()}


def _facts(keys: Collection[int], rules: Iterable[Rule], now: datetime) -> list[Facts]:
    """What is known of these series, in one query."""
    most = max(rule.row.failures_in_row or 1 for rule in rules)
    runs = Run.objects.filter(series=OuterRef("pk"), slot__gt=now - HORIZON)
    outcome = JSONObject(run="pk", slot="slot", state="state", reason="reason", due_at="due_at")
    ended = runs.filter(slot__lte=now).order_by("-slot")
    heard = Subquery(ended.filter(state__in=HEARD).values("slot")[:1])
    unheard = runs.filter(state__in=UNHEARD, slot__gt=Coalesce(OuterRef("heard"), now - HORIZON))
    sites = Binding.objects.filter(series=OuterRef("pk")).order_by().values("resource__site")
    rows = (
        Series.objects.filter(pk__in=keys)
        .annotate(heard=heard)
        .values(
            "pk",
            "suite_id",
            "enabled",
            sites=ArraySubquery(sites),
            newest=ArraySubquery(ended.filter(state__in=COUNTED).values(outcome=outcome)[:most]),
            unheard=Subquery(unheard.order_by("slot").values(outcome=outcome)[:1]),
        )
    )
    return [
        Facts(row["pk"], row["suite_id"], row["enabled"], row["sites"], _known(row["newest"], row["unheard"]))
        for row in rows
    ]


def _known(newest: Sequence[dict[str, Any]], unheard: dict[str, Any] | None) -> Known:
    first = _outcome(unheard) if unheard else None
    due_at = datetime.fromisoformat(unheard["due_at"]) if unheard else None
    return Known([_outcome(one) for one in newest], first, due_at)


def _outcome(row: dict[str, Any]) -> Outcome:
    return Outcome(uuid.UUID(row["run"]), datetime.fromisoformat(row["slot"]), row["state"], row["reason"])


def _judge(
    rules: Iterable[Rule], facts: Iterable[Facts], is_open: Mapping[Key, Alert], now: datetime
) -> None:
    """Make alerts what *rules* say of *facts*; all that are open of these series are in *is_open*."""
    opened, closed, again = [], [], []
    for one in facts:
        for rule in rules:
            before = is_open.get((rule.row.pk, one.series))
            if rule.watches(one):
                verdict = judge(rule.condition, one.known, now)
            else:
                verdict = Verdict(False, "it is not watched any more")
            if verdict.is_open and before is None:
                opened.append(_opened(rule, one, verdict, now))
            elif before is not None and not verdict.is_open:
                closed.append(_closed(before, verdict, now))
            if verdict.again_at is not None:
                again.append(Recheck(series_id=one.series, due_at=verdict.again_at))
    Alert.objects.bulk_create(opened)
    Alert.objects.bulk_update(closed, ["closed_at", "closed_by", "closed_text"], batch_size=_BATCH)
    Recheck.objects.bulk_create(again)
    channels = {rule.row.pk: rule.row.notify for rule in rules}
    told = [*((one, Event.OPENED) for one in opened), *((one, Event.CLOSED) for one in closed)]
    Notification.objects.bulk_create(
        Notification(alert=alert, event=event, channel=channel, due_at=now)
        for alert, event in told
        for channel in channels[alert.rule_id]
    )


def _opened(rule: Rule, one: Facts, verdict: Verdict, now: datetime) -> Alert:
    return Alert(
        rule=rule.row,
        series_id=one.series,
        since=verdict.since or now,
        opened_at=now,
        opened_by_id=verdict.run,
        text=verdict.text,
    )


def _closed(alert: Alert, verdict: Verdict, now: datetime) -> Alert:
    alert.closed_at, alert.closed_by_id, alert.closed_text = now, verdict.run, verdict.text
    return alert
