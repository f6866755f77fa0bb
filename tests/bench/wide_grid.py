"""A depot of 500 sites with 200 series each, or fewer, with all that pages show: the loader of ``pages``."""

from __future__ import annotations

import math
from pathlib import Path
from string import Template

from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from forecasting.uncertainty.intervals import QUANTILE_LEVELS
from monitor.analysis.availability.versions import default_version
from monitor.analysis.outcomes import worker as outcomes
from monitor.core.db import partitions
from monitor.depot.access.roles import Grant, grant
from monitor.models import FailureSignature, StandingChange, Suite
from monitor.models.role import UserRole
from monitor.web.status import standings
from tests.bench import overview

OWN_SITE = "site-7"  # of the site admin
SIGNATURES = 40
PAST_DAYS = 42  # with failed runs
_STATEMENTS = Template(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def load(sites: int = overview.SITES, series: int = overview.SERIES) -> dict[str, User]:
    """Fill an empty depot with *sites* of so many *series* each; return a user of each kind.

    They are an administrator, a viewer and a site admin; the last two do not see one suite of ten.
    """
    _create_partitions()
    overview.load(sites, series)
    FailureSignature.objects.bulk_create(_signature(number) for number in range(SIGNATURES))
    statements = _STATEMENTS.substitute(
        sites=sites,
        series=series,
        signatures=SIGNATURES,
        levels=len(QUANTILE_LEVELS),
        version=default_version().pk,
    )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no trigger runs
        cursor.execute(statements)
        cursor.execute("RESET session_replication_role")
        cursor.execute("INSERT INTO monitor_standingchange (series_id) SELECT id FROM monitor_series")
        while StandingChange.objects.exists():
            standings.recount_due(timezone.now())
        cursor.execute("VACUUM ANALYZE")
    outcomes.count(timezone.now(), within_seconds=math.inf)
    return _users()


def _create_partitions() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT day FROM generate_series(now() - make_interval(days => %s), now() + interval '1 day',"
            " interval '1 day') AS day",
            [PAST_DAYS],
        )
        partitions.create_for({day for (day,) in cursor.fetchall()})


def _users() -> dict[str, User]:
    closed = Suite.objects.get(name="suite-1")
    closed.viewers.add(Group.objects.create(name="few"))
    administrator = User.objects.create_user("bench-administrator", is_superuser=True, is_staff=True)
    viewer = User.objects.create_user("bench-viewer")
    grant(viewer, Grant(UserRole.VIEWER))
    site_admin = User.objects.create_user("bench-site-admin")
    grant(site_admin, Grant(UserRole.SITE_ADMIN, OWN_SITE))
    return {"administrator": administrator, "viewer": viewer, "site admin": site_admin}


def _signature(number: int) -> FailureSignature:
    return FailureSignature(
        name=f"cause-{number}",
        title=f"Cause {number}",
        category="storage",
        severity="major",
        counts_against_site=True,
    )
