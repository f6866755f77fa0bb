"""Versions of availability profiles: recorded when a profile changes, chosen by site and day."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any

from monitor.analysis.availability.profiles import DEFAULT
from monitor.models import AvailabilityProfile, ProfileVersion, Site

_BEGINNING = date(1970, 1, 1)
_NAME = re.compile(r"([-a-zA-Z0-9_]+)-([0-9]{1,9})")


class VersionsByDay:
    """Chooses the version by which the availability of a site is computed."""

    def __init__(self, versions: Iterable[ProfileVersion], default: ProfileVersion) -> None:
        self._versions = sorted(versions, key=lambda version: (version.profile, version.number))
        self._default = default
        self._valid: dict[date, list[ProfileVersion]] = {}

    def find(self, site: int, day: date) -> ProfileVersion:
        """Return the version of the profile that names *site* (its key), else of the one for all sites, else
        the default; of the versions of a profile, the latest that is valid on *day*."""
        if day not in self._valid:
            latest = {each.profile: each for each in self._versions if each.valid_from <= day}
            self._valid[day] = [each for each in latest.values() if each.rules is not None]
        valid = self._valid[day]
        named = (each for each in valid if site in each.site_keys)
        general = (each for each in valid if not each.site_keys)
        return next(named, None) or next(general, None) or self._default


def all_versions() -> VersionsByDay:
    own = ProfileVersion.objects.exclude(profile=DEFAULT)
    return VersionsByDay(own, default_version())


def default_version() -> ProfileVersion:
    """Return the version of sites without a profile: every probe is needed, of its series any."""
    version, _ = ProfileVersion.objects.get_or_create(
        profile=DEFAULT,
        number=1,
        defaults={"valid_from": _BEGINNING, "created_at": datetime(1970, 1, 1, tzinfo=UTC), "rules": {}},
    )
    return version


def find_version(text: str) -> ProfileVersion | None:
    """Return the version with the name *text*, such as ``production-2``."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    profile, number = match.groups()
    if profile == DEFAULT:
        default_version()
    return ProfileVersion.objects.filter(profile=profile, number=int(number)).first()


def record_versions(now: datetime) -> list[ProfileVersion]:
    """Store a version of each profile that differs from its latest version; return the new versions.

    A version is valid from the day that its profile names, else from today on (UTC). A profile that was
    removed gets a version without rules, valid from today on.
    """
    today = now.astimezone(UTC).date()
    latest = {version.profile: version for version in ProfileVersion.objects.exclude(profile=DEFAULT)}
    new = []
    for profile in AvailabilityProfile.objects.prefetch_related("sites"):
        old = latest.pop(profile.name, None)
        content = _content(profile, old)
        is_moved = old is not None and profile.valid_from not in (None, old.valid_from)
        if old is None or is_moved or any(getattr(old, name) != value for name, value in content.items()):
            number = old.number + 1 if old else 1
            valid_from = profile.valid_from or today
            new.append(ProfileVersion(profile=profile.name, number=number, valid_from=valid_from, **content))
    new.extend(
        ProfileVersion(profile=removed.profile, number=removed.number + 1, valid_from=today, rules=None)
        for removed in latest.values()
        if removed.rules is not None
    )
    for version in new:
        version.created_at = now
    return ProfileVersion.objects.bulk_create(new)


def _content(profile: AvailabilityProfile, old: ProfileVersion | None) -> dict[str, Any]:
    return {
        "title": profile.title,
        "site_keys": _site_keys(profile, old),
        "rules": {
            "needs": profile.needs,
            "include": profile.include,
            "exclude": profile.exclude,
            "services": profile.services,
        },
    }


def _site_keys(profile: AvailabilityProfile, old: ProfileVersion | None) -> list[int]:
    """Return the keys of the sites of *profile*; if all of them were deleted, those of the *old* version.

    Without this, the profile of a deleted site would apply to all sites.
    """
    keys = sorted(site.pk for site in profile.sites.all())
    if not keys and old is not None and not Site.objects.filter(pk__in=old.site_keys).exists():
        return list(old.site_keys)
    return keys
