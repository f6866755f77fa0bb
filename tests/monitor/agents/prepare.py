"""``python -m tests.monitor.agents.prepare SITES DIRECTORY``: set up an empty depot.

Creates the tables, and for each site a reporter with two series: one whose reports a feeder writes, one
that its agent runs every minute. The enrolment code of each reporter is written to a file of its name.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django


def main(sites: int, directory: Path) -> None:
    django.setup()
    from django.core.management import call_command
    from django.utils import timezone

    from monitor.models import Reporter, Site
    from monitor.operations.gridfile.define import SeriesDefinition, define
    from monitor.runs.fleet.enrolment import create_code
    from reporters.config import ResourceConfig
    from tests.monitor.agents.feeder import resource_of, series_of

    call_command("migrate", verbosity=0)
    names = [f"site-{number}" for number in range(sites)]
    if Reporter.objects.filter(name__in=names).exists():
        return  # the server has been started again
    for name in names:
        Reporter.objects.create(name=name, site=Site.objects.create(name=name))
    define(
        [ResourceConfig(resource_of(name), name, str(directory)) for name in names],
        [
            SeriesDefinition(
                series, "noop", {"target": [resource_of(name)]}, reporter=name, schedule=schedule
            )
            for name in names
            for series, schedule in ((series_of(name), ""), (f"every-minute-{name}", "* * * * *"))
        ],
    )
    for reporter in Reporter.objects.filter(name__in=names):
        code = create_code(reporter, None, timezone.now())
        (directory / f"{reporter.name}.code").write_text(code, encoding="ascii")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
