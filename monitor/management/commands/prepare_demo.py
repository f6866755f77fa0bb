"""``manage.py prepare_demo``: create tables, users and series of the demo; the demo's supervisor runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.core import env
from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, DemoWeather, Reporter, Series, Site, UserRole
from monitor.models.token import READ
from monitor.operations.gridfile.define import define
from monitor.runs.fleet.create import create_reporter
from monitor.testbed.demo import definition
from monitor.testbed.sites.description import GridDescription, load_description
from monitor.testbed.sites.layout import Layout
from monitor.testbed.sites.programs import search_path
from monitor.testbed.weather import EDITION
from monitor.web.accounts import passwords, users

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    help = "Prepare the depot for the demo (idempotent)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--unscheduled", action="store_true", help="run series on request only")
        parser.add_argument("--wan", action="store_true", help="use the wide-area test-bed")

    def handle(self, *, unscheduled: bool, wan: bool, **_: Any) -> None:
        call_command("migrate", verbosity=0)
        viewer = _user("viewer")
        roles.grant(viewer, Grant(UserRole.VIEWER))
        roles.grant(_user("operator"), Grant(UserRole.OPERATOR))
        ApiToken.objects.keep(viewer, "demo", [READ], env.kept_secret("demo-token"))
        grid = load_description(settings.VAR_DIR / ("wan" if wan else "testbed"))
        if grid is None:
            raise CommandError(f"the grid is not up: manage.py testbed up{' --wan' if wan else ''}")
        DemoWeather.objects.record(grid.profile, grid.seed, grid.scale, timezone.now(), edition=EDITION)
        demo_grid = definition.WAN if wan else definition.LOCAL
        for other in definition.GRIDS:
            if other != demo_grid:
                _disable_series(other)
        series = definition.series(demo_grid, scheduled=not unscheduled)
        define(list(grid.resources.values()), series, definition.alerts())
        if not wan:
            _define_remote_series(grid)
        for name, (latitude, longitude) in definition.PLACES.items():
            Site.objects.filter(name=name, latitude=None).update(latitude=latitude, longitude=longitude)


def _define_remote_series(grid: GridDescription) -> None:
    for name in definition.REMOTE_REPORTERS:
        if not Reporter.objects.filter(name=name).exists():
            create_reporter(name, name, capacity=1)
    layout = Layout.of(grid.directory, len(grid.sites))
    nodes = [
        definition.node(grid.resources[place.name], search_path(layout, place, with_compiler=True))
        for place in layout.sites
        if place.name in definition.REMOTE_REPORTERS
    ]
    for resource in nodes:
        Path(resource.scratch).mkdir(exist_ok=True)
    define(nodes, definition.remote_series())


def _disable_series(demo_grid: definition.DemoGrid) -> None:
    """Disable the series of a grid whose test-bed is not running."""
    names = [series.name for series in definition.series(demo_grid, scheduled=False)]
    if demo_grid == definition.LOCAL:
        names += [series.name for series in definition.remote_series()]
    Series.objects.filter(name__in=names, enabled=True).update(enabled=False)


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first() or users.create(name, None)
    password = env.demo_password(name)
    if not passwords.is_right(user, password):
        user.set_password(password)
        user.save()
    return user
