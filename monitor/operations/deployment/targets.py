"""Which reporter is deployed at a site, and how to log in there; which deployments names stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monitor.models import Deployment, Reporter, Site
from monitor.runs.fleet.create import InvalidReporter, create_reporter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


DEFAULT_CAPACITY = 4  # as in the model


class NoTarget(Exception):
    """There is no such site or deployment, or no way to log in; the message says what to do."""


@dataclass(frozen=True)
class DeploymentTarget:
    """A reporter to be deployed, and the shell of the host, as in a grid file."""

    reporter: Reporter
    shell: Mapping[str, Any]


def find_target(site_name: str, name: str, host: str, ssh_config: Path | None) -> DeploymentTarget:
    """Return the target for a site: the reporter *name* (created if it is missing) at *host*.

    *name* is by default that of the site. *host* is by default that of an earlier deployment, else that of
    the site's resources. *ssh_config* is for a given *host*.

    Raises:
        NoTarget: as the class says.
    """
    site = Site.objects.filter(name=site_name).first()
    if site is None:
        defined = ", ".join(Site.objects.values_list("name", flat=True)[:20]) or "none"
        raise NoTarget(f"there is no site {site_name!r}; defined are {defined}: see manage.py grid apply")
    shell = _given_shell(host, ssh_config) if host else _known_shell(site, name or site_name)
    reporter = Reporter.objects.filter(name=name or site_name).first() or _created(name or site_name, site)
    if reporter.site_id != site.pk:
        place = f"at the site {reporter.site}" if reporter.site else "a Celery worker"
        raise NoTarget(f"the reporter {reporter.name} is {place}; name another one with --name")
    return DeploymentTarget(reporter, shell)


def find_deployments(names: Sequence[str]) -> dict[str, Deployment]:
    """Return the deployments of the reporters *names*; without names, all.

    Raises:
        NoTarget: a reporter was not deployed by this server.
    """
    deployments = {
        found.reporter.name: found for found in Deployment.objects.select_related("reporter__site")
    }
    unknown = [name for name in names if name not in deployments]
    if unknown:
        raise NoTarget(
            f"no deployment of {', '.join(unknown)} is known; deployed are {', '.join(deployments) or 'none'}"
        )
    return {name: deployments[name] for name in names or deployments}


def _created(name: str, site: Site) -> Reporter:
    try:
        return create_reporter(name, site.name, DEFAULT_CAPACITY)
    except InvalidReporter as error:
        raise NoTarget(str(error)) from None


def _given_shell(host: str, ssh_config: Path | None) -> dict[str, Any]:
    user, _, name = host.rpartition("@")
    shell: dict[str, Any] = {"kind": "ssh", "host": name}
    return (
        shell
        | ({"user": user} if user else {})
        | ({"config_file": str(ssh_config.absolute())} if ssh_config else {})
    )


def _known_shell(site: Site, name: str) -> Mapping[str, Any]:
    deployed = Deployment.objects.filter(reporter__name=name, reporter__site=site).first()
    if deployed is not None:
        shell: Mapping[str, Any] = deployed.shell
        return shell
    shells: list[Mapping[str, Any]] = []
    for resource in site.resources.all():
        if resource.shell.get("kind") == "ssh" and resource.shell not in shells:
            shells.append(resource.shell)
    if not shells:
        raise NoTarget(f"the site {site.name} has no resource with the shell ssh; name a host with --host")
    if len(shells) > 1:
        hosts = ", ".join(str(shell.get("host")) for shell in shells)
        raise NoTarget(f"the site {site.name} has several hosts, {hosts}: name one with --host")
    return shells[0]
