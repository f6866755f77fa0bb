"""Recompute the availability of sites on request, and record who wanted it, why, and what it changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.db import transaction

from monitor.analysis.availability import dirty_days_sql
from monitor.analysis.availability.compute import WantedDay
from monitor.analysis.availability.months import FIRST_MONTH, month_after, month_name
from monitor.analysis.availability.store import compute_and_store
from monitor.analysis.availability.timelines import StatusSeconds
from monitor.analysis.availability.versions import all_versions
from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.core.units import tenths_of_percent
from monitor.depot.access.audit_trail import note
from monitor.models import ProfileVersion, Recomputation, RecomputedPeriod, Site, SiteDay, SiteMonth
from monitor.models.hold import MAX_REASON_CHARACTERS

MOST_DAYS = 400  # of a recomputation


class InvalidRecomputation(Exception):
    """A recomputation is refused; the message says what is expected."""


@dataclass(frozen=True)
class RecomputationRequest:
    """The availability of *sites* from *first* to *last* is to be computed again.

    *version* is the profile to use for all days; None: each day keeps the version that it has.
    """

    sites: Sequence[Site]
    first: date
    last: date
    requester: str
    reason: str
    version: ProfileVersion | None = None


@dataclass(frozen=True)
class _Before:
    """Stored figures and names of versions, by (site, day or first day of a month, whether a month)."""

    seconds: Mapping[tuple[int, date, bool], StatusSeconds]
    versions: Mapping[tuple[int, date, bool], str]


@transaction.atomic
def recompute(request: RecomputationRequest, now: datetime) -> Recomputation:
    """Compute the availability again, also of published months; return the record, with what changed.

    Days that have not begun stay out.

    Raises:
        InvalidRecomputation: there is no reason, or the period or the profile is not possible.
    """
    _check(request, now)
    lock_until_commit(AdvisoryLock.AVAILABILITY)
    keys = [site.pk for site in request.sites]
    today = now.astimezone(UTC).date()
    last = min(request.last, today)
    before = _stored(keys, request.first, last)
    dirty_days_sql.forget_marks(keys, request.first, last)
    while dirty_days_sql.take_marks(today):
        pass
    dirty_days_sql.create_days(request.first.replace(day=1), last, keys)
    compute_and_store(_wanted(request, keys, last, before), now)
    _note_no_late_data(request, keys)
    record = Recomputation.objects.create(
        requester=request.requester[:200],
        reason=request.reason.strip(),
        at=now,
        first=request.first,
        last=request.last,
        version=request.version,
    )
    after = _stored(keys, request.first, last)
    RecomputedPeriod.objects.bulk_create(_changes(record, request.sites, before, after))
    for site in request.sites:
        period = f"{request.first} to {request.last}"
        note("availability", site.name, after=f"recomputed from {period}: {record.reason}")
    return record


def _check(request: RecomputationRequest, now: datetime) -> None:
    if not request.reason.strip():
        raise InvalidRecomputation("expected a reason")
    if len(request.reason.strip()) > MAX_REASON_CHARACTERS:
        raise InvalidRecomputation(f"expected a reason of at most {MAX_REASON_CHARACTERS} characters")
    if not request.sites:
        raise InvalidRecomputation("expected a site")
    if request.last < request.first:
        raise InvalidRecomputation(f"{request.last} is before {request.first}")
    if request.first < FIRST_MONTH:
        raise InvalidRecomputation(f"expected a day from {FIRST_MONTH} on, got {request.first}")
    if request.first > now.astimezone(UTC).date():
        raise InvalidRecomputation(f"{request.first} lies in the future")
    if (request.last - request.first).days >= MOST_DAYS:
        raise InvalidRecomputation(f"expected at most {MOST_DAYS} days")
    _check_version(request)


def _check_version(request: RecomputationRequest) -> None:
    version = request.version
    if version is None:
        return
    if version.rules is None:
        raise InvalidRecomputation(f"{version} has no rules: the profile was removed")
    outside = [site.name for site in request.sites if version.site_keys and site.pk not in version.site_keys]
    if outside:
        raise InvalidRecomputation(f"{version} does not apply to {', '.join(outside)}")


def _stored(sites: Sequence[int], first: date, last: date) -> _Before:
    seconds: dict[tuple[int, date, bool], StatusSeconds] = {}
    versions: dict[tuple[int, date, bool], str] = {}
    days = SiteDay.objects.of_sites().filter(site__in=sites, day__range=(first, last), version__isnull=False)
    for row in days.select_related("version"):
        seconds[row.site_id, row.day, False] = seconds_of(row)
        versions[row.site_id, row.day, False] = str(row.version)
    months = SiteMonth.objects.of_sites().filter(site__in=sites, month__range=(first.replace(day=1), last))
    for month in months:
        seconds[month.site_id, month.month, True] = seconds_of(month)
    return _Before(seconds, versions)


def seconds_of(row: SiteDay | SiteMonth) -> StatusSeconds:
    return StatusSeconds(row.up_seconds, row.unknown_seconds, row.scheduled_seconds, row.down_seconds)


def _wanted(
    request: RecomputationRequest, sites: Sequence[int], last: date, before: _Before
) -> list[WantedDay]:
    """Return the days to compute, and the days of their months that were never computed."""
    known = {str(version): version for version in ProfileVersion.objects.all()}
    chosen, wanted = all_versions(), []
    new = SiteDay.objects.of_sites().filter(
        site__in=sites, day__range=(request.first.replace(day=1), last), version=None
    )
    days = {(row.site_id, row.day) for row in new}
    days.update((site, day) for site in sites for day in _days(request.first, last))
    for site, day in sorted(days):
        stored = known.get(before.versions.get((site, day, False), ""))
        own = request.version if day >= request.first else None
        wanted.append(WantedDay(site, day, own or stored or chosen.find(site, day)))
    return wanted


def _days(first: date, last: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range((last - first).days + 1))


def _note_no_late_data(request: RecomputationRequest, sites: Sequence[int]) -> None:
    """Clear the note on the months of which all days were computed."""
    months = (
        month
        for month in {day.replace(day=1) for day in _days(request.first, request.last)}
        if month >= request.first and month_after(month) <= request.last + timedelta(days=1)
    )
    SiteMonth.objects.filter(site__in=sites, month__in=list(months)).update(has_late_data=False)


def _changes(
    record: Recomputation, sites: Iterable[Site], before: _Before, after: _Before
) -> Iterator[RecomputedPeriod]:
    """Yield each month, and each day of which a figure or the version changed."""
    by_key = {site.pk: site for site in sites}
    for key, seconds in sorted(after.seconds.items()):
        site, day, is_month = key
        old, versions = before.seconds.get(key), (before.versions.get(key, ""), after.versions.get(key, ""))
        if is_month or old != seconds or versions[0] != versions[1]:
            yield RecomputedPeriod(
                recomputation=record,
                site=by_key[site],
                site_name=by_key[site].name,
                day=day,
                is_month=is_month,
                before=None if old is None else _numbers(old),
                after=_numbers(seconds),
                before_version=versions[0],
                after_version=versions[1],
            )


def _numbers(seconds: StatusSeconds) -> list[int]:
    return [seconds.up, seconds.unknown, seconds.scheduled, seconds.down]


def describe_change(period: RecomputedPeriod) -> str:
    """Return the change of the availability in words, and of the reliability if that is another one.

    ``May 2026, ncsa: 93.1 % -> 89.0 % (reliability 93.1 % -> 97.4 %)``
    """
    when = month_name(period.day) if period.is_month else period.day.isoformat()
    seconds = [StatusSeconds(*numbers) for numbers in (period.before or [0, 0, 0, 0], period.after)]
    shares = _change([each.availability for each in seconds])
    reliabilities = _change([each.reliability for each in seconds])
    also = "" if reliabilities == shares else f" (reliability {reliabilities})"
    return f"{when}, {period.site_name}: {shares}{also}"


def _change(shares: Iterable[float | None]) -> str:
    return " -> ".join("-" if share is None else tenths_of_percent(share) for share in shares)
