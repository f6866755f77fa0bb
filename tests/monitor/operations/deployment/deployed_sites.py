"""Sites on which reporters are deployed: real SSH servers, each with a crontab of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from monitor.models import Resource, Site
from reporters.remote import agent_process
from tests.reporters.ssh_sites import SshSites, processes_naming

_CRONTAB = """\
case $1 in
-l) cat "$HOME/.crontab" 2> /dev/null || { echo "no crontab for prober" >&2; exit 1; } ;;
-r) rm "$HOME/.crontab" ;;
*) cp "$1" "$HOME/.crontab" ;;
esac"""
_STATE = Path(".local", "state", "gridcast-reporter")


class DeployedSites:
    """Running SSH sites, defined in the depot under their names with one resource each."""

    def __init__(self, sites: SshSites) -> None:
        self._sites = sites
        for name, site in sites.sites.items():
            site.install("crontab", _CRONTAB)
            resource = sites.resource(name)
            Resource.objects.create(
                site=Site.objects.get_or_create(name=name)[0],
                name=name,
                scratch=resource.scratch,
                shell=dict(resource.shell),
                transfer={"kind": "ssh"},
                batch={"kind": "fork"},
            )

    @property
    def config_file(self) -> Path:
        return self._sites.config_file

    def home(self, name: str) -> Path:
        return self._sites.sites[name].root / "home"

    def state(self, name: str) -> Path:
        return self.home(name) / _STATE

    def install(self, name: str, program: str, script: str) -> None:
        self._sites.sites[name].install(program, script)

    def use_login_shell(self, name: str, script: str) -> None:
        self.install(name, "login-shell", script)
        self._sites.sites[name].login_shell = str(self._sites.sites[name].root / "bin" / "login-shell")

    def crontab(self, name: str) -> str:
        file = self.home(name) / ".crontab"
        return file.read_text() if file.exists() else ""

    def tree(self, name: str) -> set[str]:
        """Return the paths of all files of the site."""
        root = self.home(name).parent
        return {str(path.relative_to(root)) for path in root.rglob("*")}

    def processes(self, name: str) -> list[int]:
        """Return the processes that name a file of the site on their command lines."""
        return processes_naming(str(self.home(name)))

    def agents(self, name: str) -> list[int]:
        return agent_process.pids(self.state(name))


@contextlib.contextmanager
def deployed_sites(*names: str) -> Iterator[DeployedSites]:
    """Run sites of these *names*; in the end their agents are killed."""
    with SshSites(*names) as running:
        sites = DeployedSites(running)
        try:
            yield sites
        finally:
            for name in names:
                agent_process.stop(sites.state(name), within_seconds=5)
