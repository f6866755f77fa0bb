"""``manage.py demo_reporters``: deploy the demo's remote reporters; the demo's supervisor runs it."""

from __future__ import annotations

import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from monitor.operations.deployment.deploy import DeployOptions, deploy
from monitor.operations.deployment.many import at_all
from monitor.operations.deployment.targets import find_target
from monitor.testbed.demo.definition import REMOTE_REPORTERS
from reporters.remote import archive

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

RETRY_SECONDS = 10.0


class Command(BaseCommand):
    help = "Deploy the demo's remote reporters, and wait for the end of the demo."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", required=True, help="the demo's web server")

    def handle(self, *, url: str, **_: Any) -> None:
        content = archive.build()
        while at_all({name: partial(_deploy, name, url, content) for name in REMOTE_REPORTERS}, self.stdout):
            time.sleep(RETRY_SECONDS)  # in the demo's weather a login may fail
        signal.pause()


def _deploy(name: str, url: str, content: bytes, say: Callable[[str], None]) -> None:
    target = find_target(name, "", "", None)
    # The crontab is that of the site. Other services would be those of this machine's user.
    options = DeployOptions(url, content, target.shell, install=["--kind=crontab"])
    deploy(target.reporter, options, say)
