"""Remove a deployed reporter: deliver its results, leave nothing at the site, revoke its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.operations.deployment.deploy import shell_of
from monitor.operations.deployment.site_host import SiteHost
from monitor.runs.fleet.enrolment import revoke

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.models import Deployment

DELIVER_SECONDS = 120.0
_STOP_SECONDS = 180.0  # of the agent and its service


def remove(
    deployment: Deployment,
    archive: bytes,
    who: str,
    say: Callable[[str], None],
    *,
    drops_records: bool = False,
    deliver_seconds: float = DELIVER_SECONDS,
) -> None:
    """Remove the reporter of *deployment* from its site and revoke its key, for the user *who*.

    *archive* is a reporter that can uninstall; the installed one may be incomplete after a failed removal.

    Results that are not delivered within *deliver_seconds* keep the state directory and the key, unless
    *drops_records*. The reporter itself stays in the depot, with the history of its series.

    Raises:
        DeploymentFault: a step failed. A repetition continues.
    """
    reporter = deployment.reporter
    say("log in")
    with SiteHost(shell_of(reporter.name, deployment.shell), reporter.name) as host:
        host.find(deployment.python, deployment.state_directory)
        if host.exists():
            say("stop the agent, deliver its results, remove its files")
            options = ["--purge", "--yes", f"--deliver-seconds={deliver_seconds:g}"]
            host.call(
                host.stage(archive),
                "uninstall",
                *options,
                *(["--drop-records"] if drops_records else []),
                seconds=deliver_seconds + _STOP_SECONDS,
            )
    forget(deployment, who)
    say("removed")


def forget(deployment: Deployment, who: str) -> None:
    """Revoke the reporter's key, for the user *who*, and forget *deployment*; nothing is done at the site."""
    revoke(deployment.reporter, who, timezone.now())
    deployment.delete()
