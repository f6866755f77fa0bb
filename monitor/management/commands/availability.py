"""``manage.py availability``: the availability and reliability of sites by month; recomputation."""

from __future__ import annotations

import json
from argparse import Action, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.analysis.availability import report
from monitor.analysis.availability.months import InvalidMonth, month_after, parse_month
from monitor.analysis.availability.recompute import (
    InvalidRecomputation,
    RecomputationRequest,
    describe_change,
    recompute,
)
from monitor.analysis.availability.refresh import refresh
from monitor.analysis.availability.report import MonthOfSite
from monitor.analysis.availability.versions import find_version
from monitor.core.csvfile import to_csv
from monitor.core.units import coarse_seconds, tenths_of_percent
from monitor.management.caller import caller_name
from monitor.models import Site, SiteDay, SiteMonth

RECOMPUTE, SHOW = "recompute", "show"
_SECONDS = ("up_seconds", "down_seconds", "scheduled_seconds", "unknown_seconds")
_HELP = """Print the availability and reliability of sites in a month (UTC).

  availability --month 2026-03                 every site
  availability ncsa --month 2026-03            each day of a site, and its services
  availability recompute ncsa --month 2026-03 --reason "the power cut was announced"
"""


class _VerbAndSites(Action):
    """Takes the first word as the verb if it is ``recompute`` and a site follows; it may be a site's name."""

    def __call__(self, _: ArgumentParser, options: Namespace, words: Any, __: str | None = None) -> None:
        is_verb = len(words) > 1 and words[0] == RECOMPUTE
        options.verb, options.site = (RECOMPUTE, words[1:]) if is_verb else (SHOW, words)


class Command(BaseCommand):
    help = _HELP

    def create_parser(self, *args: Any, **options: Any) -> Any:
        return super().create_parser(*args, formatter_class=RawDescriptionHelpFormatter, **options)

    def add_arguments(self, parser: ArgumentParser) -> None:
        help_text = "a site; recompute SITE..."
        parser.add_argument("site", nargs="*", action=_VerbAndSites, metavar="SITE", help=help_text)
        parser.set_defaults(verb=SHOW)
        parser.add_argument("--month", metavar="YYYY-MM", default="", help="the current month by default")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", dest="as_json", help="print JSON")
        form.add_argument("--csv", action="store_true", dest="as_csv", help="print CSV, a line for each day")
        parser.add_argument("--reason", default="", help="why it is recomputed, kept with the change")
        parser.add_argument("--profile", metavar="NAME-N", help="recompute by this version of a profile")
        parser.add_argument("--by", help="the user who recomputes (default: the user of the system)")

    def handle(self, *, verb: str, site: list[str], month: str, **options: Any) -> None:
        now = timezone.now()
        try:
            first = parse_month(month, now)
        except InvalidMonth as error:
            raise CommandError(f"--month: {error}") from None
        if verb == RECOMPUTE:
            self._recompute([_site(name) for name in site], first, now, options)
            return
        if options["reason"] or options["profile"]:
            raise CommandError(f"--reason and --profile belong to: availability {RECOMPUTE} SITE")
        refresh(now)
        sites = [_site(name) for name in site] if site else None
        months = report.months_of_sites(first, now, sites=sites)
        if not months:
            raise CommandError(f"no availability is stored for {first:%Y-%m}")
        self.stdout.write(_shown(months, options, has_details=bool(site)), ending="")

    def _recompute(self, sites: list[Site], first: date, now: datetime, options: dict[str, Any]) -> None:
        version = find_version(options["profile"]) if options["profile"] else None
        if options["profile"] and version is None:
            raise CommandError(f"--profile: there is no version {options['profile']!r} of a profile")
        request = RecomputationRequest(
            sites=sites,
            first=first,
            last=month_after(first) - timedelta(days=1),
            requester=options["by"] or caller_name(),
            reason=options["reason"],
            version=version,
        )
        try:
            record = recompute(request, now)
        except InvalidRecomputation as error:
            raise CommandError(str(error)) from error
        for period in record.periods.all():
            self.stdout.write(describe_change(period))


def _site(name: str) -> Site:
    found = Site.objects.filter(name=name).first()
    if found is None:
        names = ", ".join(Site.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"there is no site {name!r}; there are: {names}")
    return found


def _shown(months: Sequence[MonthOfSite], options: dict[str, Any], *, has_details: bool) -> str:
    if options["as_json"]:
        documents = [_document(month) for month in months]
        return json.dumps(documents[0] if has_details and len(months) == 1 else documents, indent=2) + "\n"
    if options["as_csv"]:
        return _csv(months)
    return "\n".join(_days_table(month) for month in months) if has_details else _sites_table(months)


def _sites_table(months: Iterable[MonthOfSite]) -> str:
    rows = [("site", *_TITLES), *((month.site.name, *_cells(month.total)) for month in months)]
    return _table(rows)


def _days_table(month: MonthOfSite) -> str:
    state = f"final since {month.total.published_at:%Y-%m-%d}" if month.total.published_at else "not final"
    profiles = ", ".join(month.versions)
    services = report.services_of_site(month.site, month.total.month)
    rows: list[tuple[str, ...]] = [("day", *_TITLES)]
    rows += [(day.day.isoformat(), *_cells(day)) for day in month.days if day is not None]
    rows.append(("total", *_cells(month.total)))
    rows += [(service.total.service, *_cells(service.total)) for service in services]
    return f"{month.site.name}, profile {profiles}, {state}\n{_table(rows)}"


_TITLES = ("availability", "reliability", "up", "down", "scheduled", "unknown")


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _cells(row: SiteDay | SiteMonth) -> tuple[str, ...]:
    shares = (row.availability, row.reliability)
    durations = (getattr(row, name) for name in _SECONDS)
    return (
        *("-" if share is None else tenths_of_percent(share) for share in shares),
        *("-" if not duration else coarse_seconds(duration) for duration in durations),
    )


def _document(month: MonthOfSite) -> dict[str, Any]:
    published = month.total.published_at
    return {
        "site": month.site.name,
        "month": f"{month.total.month:%Y-%m}",
        "profiles": list(month.versions),
        "published_at": published.isoformat() if published else None,
        "days": [
            {"day": day.day.isoformat(), "profile": str(day.version), **_figures(day)}
            for day in month.days
            if day is not None
        ],
        "total": _figures(month.total),
        "services": {
            service.total.service: _figures(service.total)
            for service in report.services_of_site(month.site, month.total.month)
        },
    }


def _figures(row: SiteDay | SiteMonth) -> dict[str, float | None]:
    shares = {"availability": row.availability, "reliability": row.reliability}
    return {**shares, **{name: getattr(row, name) for name in _SECONDS}}


def _csv(months: Iterable[MonthOfSite]) -> str:
    header = ["site", "day", "profile", "availability", "reliability", *_SECONDS]
    rows = (
        [month.site.name, day.day, day.version, *_figures(day).values()]
        for month in months
        for day in month.days
        if day is not None
    )
    return to_csv([header, *rows], line_end="\n")
