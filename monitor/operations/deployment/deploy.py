"""Deploy a remote reporter: copy the archive, enrol, install the service, wait for the first heartbeat.

Every step may be repeated: a deployment that failed continues where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from monitor.models import Deployment, Reporter, ReporterKey
from monitor.operations.deployment.heartbeat import await_heartbeat
from monitor.operations.deployment.site_host import DeploymentFault, SiteHost
from monitor.runs.fleet.enrolment import create_code
from monitor.runs.fleet.exchange import EXCHANGE_SECONDS
from reporters import resolve
from reporters.config import ResourceConfig
from reporters.remote.commands.install import UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from reporters.base import ResourceShell

WAIT_SECONDS = 180.0  # for a heartbeat
ENROL_SECONDS = 120.0
INSTALL_SECONDS = 240.0  # has to stop an earlier agent
LABEL = "deploy"


@dataclass(frozen=True)
class DeployOptions:
    """What to deploy, and how.

    Attributes:
        url: the server, as the site reaches it.
        archive: the reporter.
        shell: how to log in, as in a grid file.
        state, python: paths at the site; empty: the defaults.
        policy, authorities: contents of files to copy to the site; None: none.
        install: further options of the reporter's ``install``.
        enrol: further options of the reporter's ``enrol``.
        wait_seconds: how long to wait for a heartbeat.
    """

    url: str
    archive: bytes
    shell: Mapping[str, Any]
    state: str = ""
    python: str = ""
    policy: bytes | None = None
    authorities: bytes | None = None
    install: Sequence[str] = ()
    enrol: Sequence[str] = ()
    wait_seconds: float = WAIT_SECONDS


def deploy(reporter: Reporter, options: DeployOptions, say: Callable[[str], None]) -> None:
    """Deploy *reporter*, which has a site; call *say* with a text for each step.

    Raises:
        DeploymentFault: a step failed. A repetition continues.
    """
    say("log in")
    with SiteHost(shell_of(reporter.name, options.shell), reporter.name) as host:
        python = host.find(options.python, options.state)
        say(f"copy the reporter (Python {python.version})")
        version = host.stage(options.archive)
        if options.policy is not None and not host.write_policy(options.policy):
            say("the site has a policy of its own, which stays")
        restart = []
        if not _is_enrolled(host, reporter, options.url):
            say("enrol")
            _enrol(host, reporter, version, options)
            restart = ["--restart"]  # a running agent goes on with the earlier enrolment
        say("install the service")
        since = timezone.now()
        installed = host.call(version, "install", *restart, *options.install, seconds=INSTALL_SECONDS)
        if installed.startswith(UNCHANGED):
            since -= timedelta(seconds=2 * EXCHANGE_SECONDS)  # it reports at its own times
        _keep(reporter, options, host, version)
        say("wait for the first heartbeat")
        if await_heartbeat(reporter, version, since, options.wait_seconds) is None:
            raise DeploymentFault(silence(host, options.wait_seconds))
    say(f"reports, version {version[:12]}")


def shell_of(name: str, shell: Mapping[str, Any]) -> ResourceShell:
    """Return the shell with which the server logs in at the site of the reporter *name*."""
    return resolve.shell_of(ResourceConfig(name, name, "/", shell=shell), LABEL)


def silence(host: SiteHost, waited_seconds: float) -> str:
    """Return the message about an agent that does not report; it has the end of the agent's log."""
    log = host.log_tail() or "(empty)"
    return f"the agent has not reported within {waited_seconds:g} s; its log in {host.state}:\n{log}"


def _is_enrolled(host: SiteHost, reporter: Reporter, url: str) -> bool:
    """Return whether the site has the active key of *reporter* for the server at *url*.

    Raises:
        DeploymentFault: the state directory belongs to another reporter.
    """
    identity = host.identity()
    name = identity.get("reporter", reporter.name)
    if name != reporter.name:
        raise DeploymentFault(
            f"{host.state} belongs to the reporter {name} of {identity.get('url')}; "
            "remove it there with `uninstall --purge`, or name another directory with --state"
        )
    fingerprint = str(identity.get("key_fingerprint", ""))
    keys = ReporterKey.objects.active().filter(reporter=reporter, fingerprint=fingerprint)
    return str(identity.get("url", "")).rstrip("/") == url.rstrip("/") and keys.exists()


def _enrol(host: SiteHost, reporter: Reporter, version: str, options: DeployOptions) -> None:
    arguments = [options.url, "-", "--force", *options.enrol]
    if options.authorities is not None:
        arguments += ["--ca-file", host.write_authorities(options.authorities)]
    code = create_code(reporter, None, timezone.now())
    host.call(version, "enrol", *arguments, input=f"{code}\n", seconds=ENROL_SECONDS)


def _keep(reporter: Reporter, options: DeployOptions, host: SiteHost, version: str) -> None:
    Deployment.objects.update_or_create(
        reporter=reporter,
        defaults={
            "shell": dict(options.shell),
            "state_directory": host.state,
            "python": host.python.path,
            "archive_sha256": version,
            "installed_at": timezone.now(),
        },
    )
