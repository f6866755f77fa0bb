"""Replace the maintenance windows of a feed by what the feed announces now."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from monitor.core.db.advisory_locks import AdvisoryLock, lock_until_commit
from monitor.models import MaintenanceChange, MaintenanceWindow, Resource, Site
from monitor.models.maintenance_change import MaintenanceAction
from monitor.runs.maintenance.changes import DECLARED, MaintenanceError, Reason, describe_window, store
from monitor.runs.maintenance.feeds.base import FeedHorizon

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.runs.maintenance.feeds.base import AnnouncedWindow

PAST, AHEAD = timedelta(days=90), timedelta(days=400)  # the imported period
_SOURCE_CHARACTERS, _NAME_CHARACTERS = 50, 37  # of the name of a window, with 12 characters of a hash


@dataclass
class WindowImport:
    """What an import changes.

    Attributes:
        unmatched: announced windows at no site of the grid, which are skipped.
    """

    changes: list[MaintenanceChange] = field(default_factory=list)
    unchanged: int = 0
    unmatched: list[AnnouncedWindow] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        return Counter(change.action for change in self.changes)


@dataclass(frozen=True)
class SiteNames:
    """The sites of the grid by name and by host, in lower case.

    Attributes:
        only: if not None, every window is at this site.
        is_whole: whether a window of any host of a site is a window of the site.
    """

    sites: Mapping[str, Site]
    hosts: Mapping[str, Site]
    only: Site | None = None
    is_whole: bool = False

    def find(self, window: AnnouncedWindow) -> list[Site]:
        """Return the sites of *window*.

        A window with hosts is at the sites of those hosts that are resources: a site has many hosts that no
        probe uses.
        """
        if self.only is not None:
            return [self.only]
        found = {self.hosts[host] for host in window.hosts if host in self.hosts}
        if not window.hosts or self.is_whole:
            names = (name.lower() for name in window.sites)
            found |= {self.sites[name] for name in names if name in self.sites}
        return sorted(found, key=lambda site: site.name)


def horizon_at(now: datetime) -> FeedHorizon:
    return FeedHorizon(now - PAST, now + AHEAD)


def site_names(*, only: Site | None = None, is_whole: bool = False) -> SiteNames:
    hosts: dict[str, Site] = {}
    for resource in Resource.objects.select_related("site"):
        for way in (resource.shell, resource.transfer, resource.batch, {"host": resource.address}):
            host = way.get("host")
            if isinstance(host, str) and host:
                hosts[host.lower()] = resource.site
    return SiteNames({site.name.lower(): site for site in Site.objects.all()}, hosts, only, is_whole)


@transaction.atomic
def import_windows(
    announced: Iterable[AnnouncedWindow],
    source: str,
    sites: SiteNames,
    reason: Reason,
    *,
    is_dry_run: bool = False,
) -> WindowImport:
    """Replace the windows of *source* by *announced*, with a record of each change.

    A window that the feed announces no more is removed if it lies in the future, ends now if it is open, and
    stays if it is over.

    Raises:
        MaintenanceError: *source* is the name of declared windows, or too long.
    """
    if source == DECLARED or len(source) > _SOURCE_CHARACTERS:
        raise MaintenanceError(f"{source!r} cannot be the name of a feed")
    lock_until_commit(AdvisoryLock.GRID_FILE)
    stored = {window.uid: window for window in _stored(source)}
    result = WindowImport()
    for window in announced:
        at_sites = sites.find(window)
        if not at_sites:
            result.unmatched.append(window)
        elif window.uid in stored:
            _update(stored.pop(window.uid), window, at_sites, reason, result)
        else:
            _create(window, source, at_sites, reason, result)
    for old in stored.values():
        _retire(old, reason, result)
    if is_dry_run:
        transaction.set_rollback(True)
    else:
        store(result.changes)
    return result


def _stored(source: str) -> Iterable[MaintenanceWindow]:
    return MaintenanceWindow.objects.filter(source=source).prefetch_related("sites")


def _create(
    announced: AnnouncedWindow, source: str, sites: list[Site], reason: Reason, result: WindowImport
) -> None:
    digest = hashlib.sha256(f"{source}\0{announced.uid}".encode()).hexdigest()[:12]
    window = MaintenanceWindow(
        name=f"{source[:_NAME_CHARACTERS]}-{digest}",
        title=announced.title,
        starts_at=announced.starts_at,
        ends_at=announced.ends_at,
        source=source,
        uid=announced.uid,
        url=announced.url,
    )
    window.save()
    window.sites.set(sites)
    after = describe_window(window, [site.name for site in sites])
    result.changes.append(reason.change(window, MaintenanceAction.ADDED, after=after))


def _update(
    window: MaintenanceWindow,
    announced: AnnouncedWindow,
    sites: list[Site],
    reason: Reason,
    result: WindowImport,
) -> None:
    old_sites = list(window.sites.all())
    before = describe_window(window, [site.name for site in old_sites])
    values = {name: getattr(announced, name) for name in ("title", "url", "starts_at", "ends_at")}
    if set(old_sites) == set(sites) and all(getattr(window, name) == values[name] for name in values):
        result.unchanged += 1
        return
    for name, value in values.items():
        setattr(window, name, value)
    after = describe_window(window, [site.name for site in sites])
    window.save()
    window.sites.set(sites)
    result.changes.append(reason.change(window, MaintenanceAction.CHANGED, before=before, after=after))


def _retire(window: MaintenanceWindow, reason: Reason, result: WindowImport) -> None:
    if window.starts_at is None or window.ends_at is None or window.ends_at <= reason.at:
        return
    sites = [site.name for site in window.sites.all()]
    before = describe_window(window, sites)
    if window.starts_at >= reason.at:
        result.changes.append(reason.change(window, MaintenanceAction.REMOVED, before=before))
        window.delete()
        return
    window.ends_at = reason.at
    window.save()
    after = describe_window(window, sites)
    result.changes.append(reason.change(window, MaintenanceAction.SHORTENED, before=before, after=after))
