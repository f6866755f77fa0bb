"""Search: sites, resources, series, runs, incidents and signatures by a text, among what a user may see."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from monitor.models import FailureSignature, Incident, Resource, Run, Series, Site, Suite
from monitor.models.natural_order import UNINDEXED_ORDER
from monitor.models.visibility import sees_all
from monitor.runs.ledger.attribution import outcome_label

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models.series import SeriesQuerySet

AT_MOST = 20  # of each kind
MOST_CHARACTERS = 200
MOST_WORDS = 8
LEAST_DIGITS = 8  # of the beginning of the id of a run
_ID = re.compile(f"[0-9a-f]{{{LEAST_DIGITS},32}}")


@dataclass(frozen=True)
class Hit:
    """One object: its *name*, its page, and what tells it from others: a *note* and a time, *at*."""

    name: str
    url: str
    note: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class HitGroup:
    """The objects of one kind, the best first; *has_more*: some were left out."""

    label: str
    hits: Sequence[Hit]
    has_more: bool


def words_of(text: str) -> list[str]:
    """Return the words of a search text; more than ``MOST_WORDS`` are left out."""
    return text.replace("\x00", "")[:MOST_CHARACTERS].split()[:MOST_WORDS]


def with_words(columns: Sequence[str], words: Iterable[str]) -> Q:
    """Return the condition that each of *words* is part of one of the *columns*."""
    condition = Q()
    for word in words:
        in_some = Q()
        for column in columns:
            in_some |= Q(**{f"{column}__has_text": word})
        condition &= in_some
    return condition


def search(
    user: AbstractBaseUser | AnonymousUser, text: str, now: datetime, *, at_most: int = AT_MOST
) -> list[HitGroup]:
    """Return what *user* may see and *text* names, without empty groups."""
    words = words_of(text)
    if not words:
        return []
    in_names = with_words(["name"], words)
    named = with_words(["name", "title"], words)
    resources = Resource.objects.visible_to(user).filter(in_names).select_related("site")
    series = _visible_series(user).filter(in_names).only("name", "probe")
    signatures = FailureSignature.objects.filter(named)
    causes = with_words(["headline", "name", "signature__title", "signature__name"], words)
    incidents = Incident.objects.visible_to(user).filter(causes).select_related("signature").distinct()
    groups = [
        _group("Runs", [_run(run) for run in _runs(user, text, now)], at_most),
        _group(
            "Sites",
            [_site(each) for each in _first(Site.objects.visible_to(user).filter(named), at_most)],
            at_most,
        ),
        _group("Series", [_series(each) for each in _first(series, at_most)], at_most),
        _group("Resources", [_resource(each) for each in _first(resources, at_most)], at_most),
        _group(
            "Incidents",
            [_incident(each) for each in incidents.order_by("-opened_at")[: at_most + 1]],
            at_most,
        ),
        _group(
            "Signatures", [_signature(each) for each in signatures.order_by("name")[: at_most + 1]], at_most
        ),
    ]
    return [group for group in groups if group.hits]


def only_hit(groups: Sequence[HitGroup], text: str) -> Hit | None:
    """Return the object that *text* names in full, or the only one that was found."""
    hits = [hit for group in groups for hit in group.hits]
    exact = [hit for hit in hits if hit.name == text.strip()]
    if len(exact) == 1:
        return exact[0]
    return hits[0] if len(hits) == 1 else None


def _first(found: QuerySet[Any], at_most: int) -> Iterable[Any]:
    """Return the first of *found*, and one more if there are more."""
    return found.order_by(UNINDEXED_ORDER)[: at_most + 1]


def _visible_series(user: AbstractBaseUser | AnonymousUser) -> SeriesQuerySet:
    """Return the series that *user* may see; the list of suites avoids a join for each series."""
    if sees_all(user):
        return Series.objects.all()
    suites = Suite.objects.visible_to(user).values_list("pk", flat=True)
    return Series.objects.filter(suite__in=list(suites))


def _group(label: str, hits: Sequence[Hit], at_most: int) -> HitGroup:
    return HitGroup(label, hits[:at_most], len(hits) > at_most)


def _runs(user: AbstractBaseUser | AnonymousUser, text: str, now: datetime) -> list[Run]:
    """Return the runs whose id begins with *text*, at least ``LEAST_DIGITS`` digits of it."""
    digits = text.strip().lower().replace("-", "")
    if not _ID.fullmatch(digits):
        return []
    visible = Run.objects.visible_to(user).select_related("series")
    if len(digits) == 32:
        run = visible.find(uuid.UUID(digits), now)
        return [run] if run else []
    first, last = (uuid.UUID(digits.ljust(32, digit)) for digit in "0f")
    return list(visible.filter(pk__gte=first, pk__lte=last).order_by()[: AT_MOST + 1])


def _run(run: Run) -> Hit:
    note = f"{run.series.name}, {outcome_label(run.state)}"
    return Hit(str(run.pk), reverse("run", args=[run.pk]), note, run.slot)


def _site(site: Site) -> Hit:
    return Hit(site.name, reverse("site", args=[site.name]), site.title)


def _resource(resource: Resource) -> Hit:
    site = resource.site.name
    return Hit(resource.name, reverse("resource", args=[site, resource.name]), f"at {site}")


def _series(series: Series) -> Hit:
    return Hit(series.name, reverse("series", args=[series.name]), series.probe)


def _incident(incident: Incident) -> Hit:
    state = "open, since" if incident.resolved_at is None else "resolved, began"
    return Hit(str(incident), reverse("incident", args=[incident.pk]), state, incident.since)


def _signature(signature: FailureSignature) -> Hit:
    return Hit(
        signature.title, reverse("failure", args=[signature.name]), f"{signature.name}, {signature.category}"
    )
