"""``python -m tests.monitor.ends.prepare DIRECTORY``: set up an empty depot.

Creates the tables, series of every kind, a token, keys of pings and the codes of agents, in files of
DIRECTORY.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import django

OUTSIDE = {"unscheduled": "", "unscheduled-2": "", "minutes": "* * * * *", "hours": "0 * * * *"}
AGENTS = ("site-a", "site-b")
REQUESTED = tuple(f"requested-{number}" for number in range(6))


def main(directory: Path) -> None:
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.utils import timezone

    from monitor.models import ApiToken, PingKey, Reporter, Series
    from monitor.models.token import REPORT, RUN
    from monitor.runs.fleet.enrolment import create_code

    call_command("migrate", verbosity=0)
    if (directory / "secrets.json").exists():
        return  # the service has been started again
    now = timezone.now()
    outside = Reporter.objects.create(name="outside")
    define_series(directory)
    user = User.objects.create_superuser("ada")
    secrets = {
        "report": ApiToken.objects.issue(user, "sender", [REPORT], outside),
        "run": ApiToken.objects.issue(user, "requests", [RUN]),
        **{
            series.name: PingKey.objects.issue(series, name="cron", who="ada", now=now)[1]
            for series in Series.objects.filter(name__in=OUTSIDE)
        },
        **{name: create_code(Reporter.objects.get(name=name), user, now) for name in AGENTS},
    }
    draft = directory / "secrets.draft"
    draft.write_text(json.dumps(secrets), encoding="ascii")
    draft.rename(directory / "secrets.json")


def define_series(directory: Path) -> None:
    from monitor.models import Reporter, Site
    from monitor.operations.gridfile.define import SeriesDefinition, define
    from reporters.config import ResourceConfig
    from tests.monitor.agents.feeder import resource_of, series_of

    for name in AGENTS:
        Reporter.objects.create(name=name, site=Site.objects.create(name=name))
    resources = [ResourceConfig("here", "here", str(directory))]
    resources += [ResourceConfig(resource_of(name), name, str(directory)) for name in AGENTS]
    outside = [
        SeriesDefinition(name, "reported", {"host": ["here"]}, schedule=schedule, reporter="outside")
        for name, schedule in OUTSIDE.items()
    ]
    of_agents = [
        SeriesDefinition(series_of(name), "noop", {"target": [resource_of(name)]}, reporter=name)
        for name in AGENTS
    ]
    requested = [SeriesDefinition(name, "noop", {"target": ["here"]}) for name in REQUESTED]
    define(resources, [*outside, *of_agents, *requested])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
