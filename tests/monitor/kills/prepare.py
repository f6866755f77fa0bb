"""``python -m tests.monitor.kills.prepare SERIES FILE``: set up an empty depot.

Creates the tables, SERIES series and a token that may send reports, which is written to FILE.
"""

from __future__ import annotations

import sys
from pathlib import Path

import django


def main(series: int, file: Path) -> None:
    django.setup()
    from django.contrib.auth.models import Permission, User
    from django.core.management import call_command

    from monitor.models import ApiToken, Reporter
    from monitor.models.reporter import HOME
    from monitor.models.token import REPORT
    from monitor.operations.gridfile.define import SeriesDefinition, define
    from reporters.config import ResourceConfig

    call_command("migrate", verbosity=0)
    resources = [ResourceConfig(name, name, f"/{name}") for name in ("here", "there")]
    names = [f"circle-{number}" for number in range(series)]
    define(resources, [SeriesDefinition(name, "circle", {"ring": ["here", "there"]}) for name in names])
    user, _ = User.objects.get_or_create(username="reporter")
    user.user_permissions.add(Permission.objects.get(codename="add_rawreport"))
    token = ApiToken.objects.issue(user, "reporter", [REPORT], Reporter.objects.get(name=HOME))
    file.write_text(token, encoding="ascii")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
