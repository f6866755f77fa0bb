"""``manage.py maintenance import|export|declare|log``: windows of feeds, and windows declared later."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_slug
from django.forms import ValidationError
from django.utils import timezone
from django.utils.text import slugify

from monitor.analysis.availability.declare import declare_and_recompute
from monitor.analysis.availability.recompute import InvalidRecomputation, describe_change
from monitor.management.caller import caller_name
from monitor.management.time_options import parse_time
from monitor.models import MaintenanceChange, MaintenanceWindow, Site
from monitor.runs.maintenance import feeds as maintenance_feeds
from monitor.runs.maintenance.changes import MaintenanceError, Reason
from monitor.runs.maintenance.feeds.base import FeedContent, InvalidFeed
from monitor.runs.maintenance.import_feed import WindowImport, horizon_at, import_windows, site_names
from monitor.runs.maintenance.read_feed import STDIN, is_url, read_feed
from monitor.runs.maintenance.write_calendar import calendar_of

if TYPE_CHECKING:
    from argparse import ArgumentParser

FORMATS = {"ical": "ical", "gocdb": "gocdb", "osg": "osg_topology"}
LATEST = 50
MAX_SHOWN = 20  # announced windows at no site
_EXAMPLE = "2026-03-01T18:00Z"


class Command(BaseCommand):
    help = "Import and export maintenance windows; declare a window after the fact (docs/ledger.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        importing = verbs.add_parser("import", help="replace the windows of a feed by what it announces now")
        importing.add_argument("feed", metavar="FILE|URL", help="file, http or https address, - for input")
        importing.add_argument("--format", required=True, choices=FORMATS, dest="feed_format")
        importing.add_argument("--site", help="the site of every window of the feed")
        importing.add_argument("--source", help="name of the feed (default: from its file or address)")
        importing.add_argument(
            "--whole-sites",
            action="store_true",
            help="a window of any host of a site is at the site, not only of a host that is a resource",
        )
        importing.add_argument(
            "--dry-run", action="store_true", help="show what would change; change nothing"
        )
        exporting = verbs.add_parser("export", help="write the windows as an iCalendar file")
        exporting.add_argument("--site", help="only windows at this site, or at every site")
        exporting.add_argument("--output", metavar="FILE", help="default: standard output")
        declaring = verbs.add_parser("declare", help="declare a window that is over")
        declaring.add_argument("name", help="name of the window")
        declaring.add_argument("--site", required=True)
        declaring.add_argument("--from", required=True, dest="since", help=f"start, such as {_EXAMPLE}")
        declaring.add_argument("--until", required=True, help=f"end, such as {_EXAMPLE}")
        declaring.add_argument("--reason", required=True, help="why, kept with the change")
        declaring.add_argument("--by", help="the user who declares it (default: the user of the system)")

        log = verbs.add_parser("log", help=f"list the latest {LATEST} changes by feeds and declarations")
        log.add_argument("--window", metavar="NAME", help="only changes of this window")

    def handle(self, *, verb: str, **options: Any) -> None:
        try:
            if verb == "import":
                self._import(options)
            elif verb == "export":
                self._export(options)
            elif verb == "log":
                self._log(options["window"])
            else:
                self._declare(options)
        except (MaintenanceError, InvalidRecomputation) as error:
            raise CommandError(str(error)) from error

    def _import(self, options: dict[str, Any]) -> None:
        now, location = timezone.now(), options["feed"]
        source, content = _source(options), _read(location, options["feed_format"], now)
        result = import_windows(
            content.windows,
            source,
            site_names(only=_site(options["site"]), is_whole=options["whole_sites"]),
            Reason(caller_name(), f"import of {_without_password(location)}", now),
            is_dry_run=options["dry_run"],
        )
        self._show(source, content, result, is_dry_run=options["dry_run"])

    def _show(self, source: str, content: FeedContent, result: WindowImport, *, is_dry_run: bool) -> None:
        for change in result.changes if is_dry_run else ():
            self.stdout.write(f"{change.action}: {change.after or change.before}")
        for window in result.unmatched[:MAX_SHOWN]:
            names = ", ".join(sorted(window.hosts) + sorted(window.sites)) or "none named"
            self.stderr.write(
                f"line {window.line}: skipped, at no site of the grid ({names}): {window.title}"
            )
        if len(result.unmatched) > MAX_SHOWN:
            self.stderr.write(f"... and {len(result.unmatched) - MAX_SHOWN} more")
        parts = [f"{count} {action}" for action, count in sorted(result.counts.items())]
        parts.append(f"{result.unchanged} unchanged")
        parts.extend(f"{count} left out: {reason}" for reason, count in sorted(content.left_out.items()))
        if result.unmatched:
            parts.append(f"{len(result.unmatched)} skipped: at no site of the grid")
        self.stdout.write(f"{source}: {', '.join(parts)}{'; nothing is changed' if is_dry_run else ''}")

    def _export(self, options: dict[str, Any]) -> None:
        windows, site = MaintenanceWindow.objects.all(), _site(options["site"])
        if site is not None:
            windows = windows.at_site(site)
        names = [site.name] if site else list(Site.objects.values_list("name", flat=True))
        data = calendar_of(windows, names, timezone.now())
        if options["output"]:
            try:
                Path(options["output"]).write_bytes(data)
            except OSError as error:
                raise CommandError(f"{options['output']}: {error.strerror or error}") from error
        else:
            self.stdout.write(data.decode(), ending="")

    def _declare(self, options: dict[str, Any]) -> None:
        name = _slug("NAME", options["name"])
        site = _site(options["site"])
        if site is None:
            raise CommandError("--site: expected the name of a site")
        times = [
            parse_time(f"--{option}", options[key], example=_EXAMPLE)
            for option, key in (("from", "since"), ("until", "until"))
        ]
        reason = Reason(options["by"] or caller_name(), options["reason"], timezone.now())
        window, record = declare_and_recompute(name, [site], times[0], times[1], reason)
        self.stdout.write(f"{window.name}: declared at {site}")
        for period in record.periods.filter(is_month=True):
            self.stdout.write(describe_change(period))

    def _log(self, window: str | None) -> None:
        changes = MaintenanceChange.objects.filter(**({"window": window} if window else {}))[:LATEST]
        for change in changes:
            self.stdout.write(
                f"{change.at:%Y-%m-%d %H:%M} UTC, {change.who}: {change.window} {change.action}: "
                f"{' -> '.join(filter(None, (change.before, change.after)))} ({change.why})"
            )
        if not changes:
            self.stdout.write("there is no change")


def _read(location: str, feed_format: str, now: Any) -> FeedContent:
    shown = "standard input" if location == STDIN else _without_password(location)
    try:
        data = read_feed(location, sys.stdin.buffer)
        return maintenance_feeds.load(FORMATS[feed_format])().parse(data, horizon_at(now))
    except InvalidFeed as error:
        place = f"{shown}:{error.line}" if error.line else shown
        raise CommandError(f"{place}: {error.reason}; nothing is imported") from error
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror or error}; nothing is imported") from error


def _source(options: dict[str, Any]) -> str:
    """Return the name of the feed; two addresses at one host have different names."""
    location = options["feed"]
    if options["source"]:
        return _slug("--source", options["source"])
    if location == STDIN:
        raise CommandError("--source: expected a name, because the feed is read from standard input")
    if is_url(location):
        digest = hashlib.sha256(location.encode()).hexdigest()[:6]
        return f"{slugify(urlsplit(location).netloc.rpartition('@')[2])[:40]}-{digest}"
    return slugify(Path(location).stem)[:50] or options["feed_format"]


def _without_password(location: str) -> str:
    if not is_url(location):
        return location
    parts = urlsplit(location)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _slug(option: str, text: str) -> str:
    try:
        validate_slug(text)
    except ValidationError:
        text = ""
    if not 0 < len(text) <= 50:
        raise CommandError(f"{option}: expected at most 50 letters, digits, - and _")
    return text


def _site(name: str | None) -> Site | None:
    if name is None:
        return None
    site = Site.objects.filter(name=name).first()
    if site is None:
        names = ", ".join(Site.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"there is no site {name!r}; there are: {names}")
    return site
