"""Spare the sites that are not at fault: a rule about sites is told of its own failures only."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q

from monitor.analysis.attribution.attribute import sites_of_failed_step
from monitor.analysis.attribution.culprits import PartKind
from monitor.models import Alert, AlertRule, Attribution, Binding, Incident
from monitor.models.natural_order import sort_name


def not_at_fault(alert: Alert, incident: Incident) -> str:
    """Return why the rule of *alert* needs no message about *incident*; empty: it needs one.

    A rule that watches the series only because of its sites needs none if another part of the grid is at
    fault; or, as long as none is named, if none of its sites took part in the step that failed. It gets the
    message all the same if no other rule with its condition, whose author may see the series, is about these
    sites, or about more than sites: a failure must be told.
    """
    if incident.condition or not _watches_only_by_site(alert):
        return ""
    if incident.kind in set(PartKind):
        part = Attribution(kind=incident.kind, name=incident.name)
        suspects, reason = set(part.sites), f"at fault is {part}"
    else:
        suspects = sites_of_failed_step(alert.opened_by) if alert.opened_by else set()
        reason = f"the step that failed was at {', '.join(sorted(suspects, key=sort_name))}"
        if not suspects:
            return ""
    if alert.rule.sites.filter(name__in=suspects).exists() or not _is_told_elsewhere(alert, suspects):
        return ""
    return reason[:300]


def _watches_only_by_site(alert: Alert) -> bool:
    rule, series = alert.rule, alert.series
    if rule.everything or series is None:
        return False
    is_named = Q(series=series) | Q(suites=series.suite_id) | Q(reporters=series.reporter_id)
    is_named |= Q(probes__contains=[series.probe])
    of_sites = Binding.objects.filter(series=series, resource__site__in=rule.sites.all())
    return of_sites.exists() and not AlertRule.objects.filter(is_named, pk=rule.pk).exists()


def _is_told_elsewhere(alert: Alert, suspects: set[str]) -> bool:
    is_wide = (
        Q(everything=True) | Q(suites__isnull=False) | Q(series__isnull=False) | Q(reporters__isnull=False)
    )
    is_wide |= ~Q(probes=[])
    others = AlertRule.objects.filter(is_wide | Q(sites__name__in=suspects), enabled=True, suspended="")
    others = others.filter(condition=alert.rule.condition).exclude(pk=alert.rule.pk).exclude(notify=[])
    if others.filter(author_name="").exists():
        return True
    return any(
        Alert.objects.visible_to(rule.present_author() or AnonymousUser()).filter(pk=alert.pk).exists()
        for rule in others.select_related("author").distinct()
    )
