"""What is told about a site beside its limits: notes, contacts, its place on the map, whether it is public.

Who manages a site may tell it; a grid file has the same keys.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from monitor.depot.access.audit_trail import note
from monitor.models.site import may_manage_everywhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from monitor.models import Site

CHANGE_SITE = "monitor.change_site"
CONFIGURED = ("title", "is_public")  # need the permission to change sites: visitors see them


class InvalidSiteDetails(ValueError):
    """The details contradict each other. The message tells the user how."""


@dataclass(frozen=True)
class SiteDetails:
    """The details of a site; latitude and longitude in degrees, both or neither."""

    title: str = ""
    latitude: float | None = None
    longitude: float | None = None
    is_public: bool = False
    notes: str = ""
    contacts: Sequence[Mapping[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, site: Site) -> SiteDetails:
        return cls(**{name: getattr(site, name) for name in cls.__dataclass_fields__})


def may_configure(user: AbstractBaseUser | AnonymousUser) -> bool:
    """Return whether *user* may change the details ``CONFIGURED``, at any site."""
    return may_manage_everywhere(user, CHANGE_SITE)


def change_details(site: Site, details: SiteDetails) -> None:
    """Store *details* of *site*.

    Raises:
        InvalidSiteDetails: one of the coordinates is missing.
    """
    if (details.latitude is None) != (details.longitude is None):
        raise InvalidSiteDetails("expected latitude and longitude, or neither")
    old, new = asdict(SiteDetails.of(site)), asdict(details)
    changed = [name for name in new if new[name] != old[name]]
    if not changed:
        return
    for name in changed:
        setattr(site, name, new[name])
    site.save(update_fields=changed)
    note("site", site.name, before=_only(old, changed), after=_only(new, changed))


def _only(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: values[name] for name in names}
