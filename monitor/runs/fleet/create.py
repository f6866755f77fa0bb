"""Create a remote reporter for a site."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import Q

from monitor.depot.access.audit_trail import note
from monitor.models import Reporter, Site
from monitor.models.reporter import HOME, MANAGE_REPORTERS

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

MAX_CAPACITY = 1_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,50}")
_RESERVED = {HOME, "enrol"}  # the home reporter; a path of the protocol


class InvalidReporter(ValueError):
    """The reporter cannot be created; the message says why. *is_taken* is set if the name exists."""

    def __init__(self, message: str, *, is_taken: bool = False) -> None:
        super().__init__(message)
        self.is_taken = is_taken


class ForeignSite(Exception):
    """The caller may not create reporters at the site."""


def create_reporter(
    name: str, site: str, capacity: int, user: AbstractBaseUser | AnonymousUser | None = None
) -> Reporter:
    """Create the reporter *name* at *site*, which runs at most *capacity* runs at the same time.

    *user* asks for it; None: trusted code. It can enrol with a code of ``enrolment.create_code``.

    Raises:
        InvalidReporter: the name is taken or reserved, or a value is invalid. A site that *user* may not see
            is none.
        ForeignSite: *user* may not create reporters at the site.
    """
    if not _NAME.fullmatch(name):
        raise InvalidReporter(f"name: expected 1 to 50 letters, digits, - and _, got {name[:60]!r}")
    if name in _RESERVED:
        raise InvalidReporter(f"name: {name!r} is reserved; choose another")
    if not 1 <= capacity <= MAX_CAPACITY:
        raise InvalidReporter(f"capacity: expected 1 to {MAX_CAPACITY} concurrent runs, got {capacity}")
    everywhere = Site.objects.all()
    manageable = everywhere if user is None else Site.objects.manageable_by(user, MANAGE_REPORTERS)
    visible = everywhere if user is None else Site.objects.visible_to(user)
    named = everywhere.none() if "\x00" in site else everywhere.filter(name=site)
    place = named.filter(Q(pk__in=manageable.values("pk")) | Q(pk__in=visible.values("pk"))).first()
    if place is None:
        raise InvalidReporter(
            f"site: there is no site {site[:60]!r}; define it in the grid file or in /admin/"
        )
    if not manageable.filter(pk=place.pk).exists():
        raise ForeignSite(f"site: you may not create reporters at {site}, which is none of your sites")
    try:
        with transaction.atomic():
            reporter = Reporter.objects.create(name=name, site=place, capacity=capacity)
    except IntegrityError:
        raise InvalidReporter(f"name: there is a reporter {name!r} already", is_taken=True) from None
    note("reporter", name, after={"site": place.name, "capacity": capacity})
    return reporter
