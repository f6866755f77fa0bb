"""Open and close alerts about remote reporters: silent, lagging, dropping records, or with a wrong clock.

Every evaluation, four a minute, judges every enrolled reporter: what they said last is one row each. The
number of queries depends on neither rules nor authors nor reporters. A grid has a default rule for each
condition; the service creates it with the first remote reporter, and evaluates it while no other rule of an
operator has its condition: that of a site admin is about its own sites.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q

from monitor.analysis.alerts import reporter_conditions, write
from monitor.analysis.alerts.conditions.base import ConditionError
from monitor.analysis.alerts.reporter_conditions.base import (
    Drop,
    ReporterCondition,
    ReporterInput,
    ReporterVerdict,
)
from monitor.analysis.alerts.reporter_conditions.dropped_records import WINDOW
from monitor.analysis.alerts.rule_authors import judge_authors
from monitor.core.db.advisory_locks import AdvisoryLock, try_lock_until_commit
from monitor.models import Alert, AlertRule, ChainRecord, Reporter, ReporterKey, ReporterStatus, Series
from monitor.models.alert import CHANGE_RULES, DEFAULT_PREFIX
from monitor.models.author import AuthorRights
from monitor.models.chain import Disposition
from monitor.models.reporter import MANAGE_REPORTERS, ReporterQuerySet
from reporters.spool.notes import DroppedNote, MalformedNote
from reporters.spool.records import DROPPED

logger = logging.getLogger(__name__)
_UNUSED = ("status__messages", "status__policy_summary", "status__policy_error", "status__assignment_error")
NEEDS_DROPS = "dropped_records"  # the condition that judges notes of dropped records
MOST_NOTES = 10_000  # newest notes of dropped records that are read


@dataclass(frozen=True)
class ReporterRule:
    """A rule about reporters in force; *sites* and *reporters* are the keys of what it names.

    *author* has the present rights of the rule's author; None: it has none.
    """

    row: AlertRule
    condition: ReporterCondition
    sites: Collection[int]
    reporters: Collection[int]
    author: AuthorRights | None

    @property
    def sees_all_reporters(self) -> bool:
        return self.author is None or self.author.sees_all or self.author.has(MANAGE_REPORTERS)

    def watches(self, reporter: Reporter, suites: Collection[int]) -> bool:
        """Return whether it watches *reporter*, which runs series in *suites*."""
        is_named = self.row.everything or reporter.pk in self.reporters or reporter.site_id in self.sites
        return is_named and self.may_see(reporter, suites)

    def may_see(self, reporter: Reporter, suites: Collection[int]) -> bool:
        """Return whether its author may see *reporter*, as ``manageable_or_visible_to`` decides."""
        if self.author is None or self.sees_all_reporters or reporter.site_id in self.author.own_sites:
            return True
        return not self.author.hidden_suites.issuperset(suites)


@transaction.atomic
def evaluate_reporters(now: datetime) -> None:
    """Open and close alerts of reporters, and queue their notifications.

    Idempotent; a concurrent call does nothing.
    """
    if not try_lock_until_commit(AdvisoryLock.ALERTS):
        return
    authors = judge_authors(now)
    reporters = list(Reporter.objects.remote().select_related("status").defer(*_UNUSED))
    misplaced = Q(series__isnull=False, rule__condition__in=reporter_conditions.names())
    is_of_reporter = Q(reporter__isnull=False) | misplaced
    rows = list(Alert.objects.open().filter(is_of_reporter).select_related("rule"))
    if not reporters and not rows:
        return
    rules = _rules(authors)
    suites = _suites_of_reporters() if not all(rule.sees_all_reporters for rule in rules) else {}
    needs_drops = any(rule.row.condition == NEEDS_DROPS for rule in rules)
    inputs = _inputs(reporters, now, needs_drops=needs_drops)
    verdicts = {
        (rule.row.pk, reporter.pk): rule.condition.judge(inputs[reporter.pk], now)
        for rule in rules
        for reporter in reporters
        if reporter.pk in inputs and rule.watches(reporter, suites.get(reporter.pk, ()))
    }
    open_alerts = {(alert.rule_id, alert.reporter_id): alert for alert in rows}
    opened = [
        Alert(rule_id=rule, reporter_id=key, since=verdict.since or now, opened_at=now, text=verdict.text)
        for (rule, key), verdict in verdicts.items()
        if verdict.is_open and (rule, key) not in open_alerts
    ]
    no_verdict = ReporterVerdict(False, "no longer watched")
    seen_by = {rule.row.pk: rule for rule in rules}
    by_key = {reporter.pk: reporter for reporter in reporters}
    closed, unseen = [], set()
    for alert in rows:
        verdict = verdicts.get((alert.rule_id, alert.reporter_id or 0), no_verdict)
        if not verdict.is_open:
            alert.closed_at, alert.closed_text = now, verdict.text
            closed.append(alert)
            rule, reporter = seen_by.get(alert.rule_id), by_key.get(alert.reporter_id or 0)
            if rule and reporter and not rule.may_see(reporter, suites.get(reporter.pk, ())):
                unseen.add(alert.pk)
    unseen |= {alert.pk for alert in closed if alert.rule.suspended}
    write.write(opened, closed, {rule.row.pk: rule.row.notify for rule in rules}, now, unseen)


def _suites_of_reporters() -> dict[int, set[int]]:
    """Return the suites of the series of each remote reporter."""
    rows = Series.objects.filter(reporter__site__isnull=False).order_by()
    suites = defaultdict(set)
    for reporter, suite in rows.values_list("reporter", "suite").distinct():
        suites[reporter].add(suite)
    return suites


def _rules(authors: Mapping[int, AuthorRights]) -> list[ReporterRule]:
    """Return the rules to evaluate; create the default rules that are missing.

    *authors* has the rights of their authors, by rule. Rules with an unusable condition are logged and
    omitted.
    """
    is_default_name = Q(name__in=[_default_name(kind) for kind in reporter_conditions.names()])
    is_about_reporters = Q(condition__in=reporter_conditions.names())
    rows = list(
        AlertRule.objects.filter(is_about_reporters | is_default_name).prefetch_related("sites", "reporters")
    )
    own = {row.condition for row in rows if not row.is_default and _is_of_operator(row, authors)}
    rows += _create_defaults({row.name for row in rows} | own)
    rules = []
    for row in rows:
        if not row.enabled or row.suspended or (row.is_default and row.condition in own):
            continue
        try:
            condition = reporter_conditions.condition(row.condition, row.threshold)
        except ConditionError as error:  # one rule must not stop the others
            logger.error("alert rule %s is ignored: %s", row.name, error)
            continue
        sites, reporters = ({each.pk for each in named.all()} for named in (row.sites, row.reporters))
        rules.append(ReporterRule(row, condition, sites, reporters, authors.get(row.pk)))
    return rules


def _is_of_operator(row: AlertRule, authors: Mapping[int, AuthorRights]) -> bool:
    """Return whether rules at every site are for the author of the rule, or it has none."""
    return not row.author_name or (row.pk in authors and authors[row.pk].has(CHANGE_RULES))


def _default_name(kind: str) -> str:
    return DEFAULT_PREFIX + kind.replace("_", "-")


def _create_defaults(existing: Collection[str]) -> list[AlertRule]:
    """Create the default rules of conditions without a rule; *existing* has conditions and names of rules."""
    kinds = [
        kind
        for kind in reporter_conditions.names()
        if kind not in existing and _default_name(kind) not in existing
    ]
    plug_ins = {kind: reporter_conditions.load(kind) for kind in kinds}
    return AlertRule.objects.bulk_create(
        AlertRule(
            name=_default_name(kind),
            title=plug_in.title,
            everything=True,
            condition=kind,
            threshold=plug_in.default,
            notify=[{"kind": "log"}],
            is_default=True,
        )
        for kind, plug_in in plug_ins.items()
    )


def reporters_in_alert(
    reporters: ReporterQuerySet, condition: ReporterCondition, kind: str, now: datetime
) -> dict[str, str]:
    """Return why each of *reporters* would have an alert now by *condition*, of this *kind*, by name."""
    rows = list(reporters.remote().select_related("status").defer(*_UNUSED))
    inputs = _inputs(rows, now, needs_drops=kind == NEEDS_DROPS)
    verdicts = {row.name: condition.judge(inputs[row.pk], now) for row in rows if row.pk in inputs}
    return {name: verdict.text for name, verdict in verdicts.items() if verdict.is_open}


def watched_reporters(rows: ReporterQuerySet, watches: Mapping[str, Any]) -> ReporterQuerySet:
    """Return the reporters of *rows* that a rule with *watches*, as in a grid file, watches."""
    if watches.get("everything"):
        return rows
    is_named = Q(name__in=watches.get("reporters", ()))
    return rows.filter(is_named | Q(site__name__in=watches.get("sites", ())))


def _inputs(reporters: Collection[Reporter], now: datetime, *, needs_drops: bool) -> dict[int, ReporterInput]:
    """Return what conditions judge, by the primary key of each enrolled reporter of *reporters*."""
    enrolled = dict(ReporterKey.objects.active().order_by().values_list("reporter_id", "enrolled_at"))
    have_dropped = [each.pk for each in reporters if (status := _status(each)) and status.dropped_records]
    drops = _drops(have_dropped, now) if needs_drops and have_dropped else {}
    return {
        reporter.pk: _input(enrolled[reporter.pk], _status(reporter), drops.get(reporter.pk, []))
        for reporter in reporters
        if reporter.pk in enrolled
    }


def _status(reporter: Reporter) -> ReporterStatus | None:
    return getattr(reporter, "status", None)


def _input(enrolled_at: datetime, status: ReporterStatus | None, drops: list[Drop]) -> ReporterInput:
    if status is None:
        return ReporterInput(enrolled_at, drops=drops)
    return ReporterInput(
        enrolled_at,
        status.seen_at,
        status.oldest_record_at,
        _finite(status.clock_offset_seconds),
        _finite(status.clock_bound_seconds),
        drops,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _drops(reporters: Collection[int], now: datetime) -> Mapping[int, list[Drop]]:
    """Return the notes of dropped records that arrived within ``WINDOW``, oldest first, by reporter."""
    notes = ChainRecord.objects.filter(
        kind=DROPPED,
        disposition=Disposition.NOTE,
        received_at__gt=now - WINDOW,
        chain__reporter__in=reporters,
    ).order_by("-received_at")
    drops: dict[int, list[Drop]] = defaultdict(list)
    rows = notes.values_list("chain__reporter_id", "received_at", "text")[:MOST_NOTES]
    for reporter, received_at, text in reversed(rows):
        drops[reporter].append(Drop(received_at, _dropped_records(text)))
    return drops


def _dropped_records(text: str) -> int:
    """Return the number of records that the note *text* reports; 1 if it is malformed."""
    try:
        note = DroppedNote.from_body(text.encode())
    except MalformedNote:
        return 1
    return note.last - note.first + 1
