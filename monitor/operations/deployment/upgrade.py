"""Upgrade a deployed reporter; return to the earlier version if the new one does not report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from monitor.models import Deployment
from monitor.operations.deployment.deploy import INSTALL_SECONDS, WAIT_SECONDS, shell_of, silence
from monitor.operations.deployment.heartbeat import await_heartbeat
from monitor.operations.deployment.site_host import DeploymentFault, SiteHost
from reporters.remote import archive as archives

if TYPE_CHECKING:
    from collections.abc import Callable


def upgrade(
    deployment: Deployment, archive: bytes, say: Callable[[str], None], wait_seconds: float = WAIT_SECONDS
) -> None:
    """Replace the reporter of *deployment* by *archive*; call *say* with a text for each step.

    Raises:
        DeploymentFault: a step failed, or the new version does not report. Then the earlier version runs
            again, unless the message says otherwise.
    """
    reporter, old = deployment.reporter, deployment.archive_sha256
    if archives.digest(archive) == old:
        say(f"has version {old[:12]} already")
        return
    say("log in")
    with SiteHost(shell_of(reporter.name, deployment.shell), reporter.name) as host:
        host.find(deployment.python, deployment.state_directory)
        say("copy the new version")
        new = host.stage(archive)
        since = timezone.now()
        try:
            say("restart the service with the new version")
            host.call(new, "install", "--keep-environment", seconds=INSTALL_SECONDS)
            say("wait for a heartbeat")
            if await_heartbeat(reporter, new, since, wait_seconds) is None:
                raise DeploymentFault(silence(host, wait_seconds))
        except DeploymentFault as error:
            say("return to the earlier version")
            raise DeploymentFault(_return(deployment, host, error, wait_seconds)) from None
        Deployment.objects.filter(pk=deployment.pk).update(archive_sha256=new, installed_at=timezone.now())
    say(f"reports, version {new[:12]}")


def _return(deployment: Deployment, host: SiteHost, error: DeploymentFault, wait_seconds: float) -> str:
    """Install the version of *deployment* again; return the message about it and about *error*."""
    old = deployment.archive_sha256
    since = timezone.now()
    try:
        host.call(old, "install", "--keep-environment", seconds=INSTALL_SECONDS)
    except DeploymentFault as worse:
        return f"{error}\nand the earlier version {old[:12]} cannot be installed: {worse}"
    if await_heartbeat(deployment.reporter, old, since, wait_seconds) is None:
        return f"{error}\nand the earlier version {old[:12]} does not report either"
    return f"{error}\nThe earlier version {old[:12]} runs again."
