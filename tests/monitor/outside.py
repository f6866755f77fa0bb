"""A series whose runs programs outside of gridcast report, and the programs that send."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client

from monitor.models import ApiToken, Heartbeat, Reporter, Series
from monitor.models.reporter import HOME
from monitor.models.token import MANAGE, REPORT
from monitor.operations.gridfile.define import SeriesDefinition, define
from monitor.runs.ledger.expand import expand
from reporters.config import ResourceConfig

NAME = "backup"


def reported_series(schedule: str = "", **fields: Any) -> Series:
    """Define a series that is reported from outside, bound to a host."""
    host = ResourceConfig("here", "site-of-here", "/scratch")
    define([host], [SeriesDefinition(NAME, "reported", {"host": ["here"]}, schedule=schedule, **fields)])
    return Series.objects.select_related("reporter").get(name=NAME)


def outside_reporter(series: Series) -> Reporter:
    """Give *series* a reporter of its own, of which no worker runs."""
    reporter = Reporter.objects.create(name="outside")
    Series.objects.filter(pk=series.pk).update(reporter=reporter)
    return reporter


def expanded(series: Series, since: datetime, now: datetime) -> Series:
    """Return *series* with its slots after *since*; the scheduler has ticked ever since."""
    Series.objects.filter(pk=series.pk).update(created_at=since)
    Heartbeat.objects.update_or_create(name="beat", defaults={"seen_at": since, "back_at": since})
    with transaction.atomic():
        expand(now)
    return series


def sender(*scopes: str) -> Client:
    """Return a program with a token of the reporter home."""
    user = User.objects.create_user("program")
    names = ("add_rawreport", "manage_reporters", "run_series")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    home = Reporter.objects.get_or_create(name=HOME)[0]
    text = ApiToken.objects.issue(user, "program", list(scopes) or [REPORT, MANAGE], home)
    return Client(headers={"authorization": f"Bearer {text}"})
