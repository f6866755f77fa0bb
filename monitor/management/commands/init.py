"""``manage.py init``: check hosts and write a first grid file."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from monitor.operations.gridfile import exporting, loading
from monitor.operations.gridfile.definition import GridDefinition, ResourceDefinition
from monitor.operations.survey import facts, proposal, ssh_hosts, trials
from monitor.operations.survey.proposal import SurveyedHost
from probes.base import InvalidParameters, ProbeFailed
from reporters.config import ResourceConfig
from reporters.shells.ssh import Shell
from reporters.usage import format_bytes

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Mapping, Sequence

CONCURRENT_LOGINS = 16
LOGIN_SECONDS = 60.0
LABEL = "init"
NEXT_STEPS = """
{file} defines {series} series at {hosts} hosts. Read it, then:
  manage.py grid plan {file}
  manage.py grid apply {file} --run    applies it and runs each new series once"""


@dataclass(frozen=True)
class Visit:
    """The result for one host.

    *surveyed* has the facts about the host, if the login succeeded. *problem* says why probes cannot run
    there; empty if they can.
    """

    name: str
    surveyed: SurveyedHost | None = None
    problem: str = ""


class Command(BaseCommand):
    help = "Log in to hosts, show what probes find there, and write a grid file that watches them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "hosts", nargs="*", metavar="HOST", help="host or alias (default: all of the SSH configuration)"
        )
        parser.add_argument(
            "--output", type=Path, default=Path("grid.yaml"), metavar="FILE", help="default: grid.yaml"
        )
        parser.add_argument(
            "--ssh-config", type=Path, metavar="FILE", help="SSH configuration (default: ~/.ssh/config)"
        )
        parser.add_argument("--overwrite", action="store_true", help="replace FILE if it exists")

    def handle(
        self, *, hosts: list[str], output: Path, ssh_config: Path | None, overwrite: bool, **_: Any
    ) -> None:
        _check_output(output, overwrite=overwrite)
        config = ssh_config.absolute() if ssh_config else None
        names = list(dict.fromkeys(hosts)) or _configured(config)
        self._say(f"Logging in to {len(names)} hosts ...")
        surveyed = self._visit_all(names, config)
        grid, notes = self._propose(surveyed, str(config or ""))
        text = _header(surveyed, notes) + exporting.to_yaml(grid)
        loading.parse(text.encode(), str(output), loading.DepotNames())
        try:
            exporting.save(text, output)
        except OSError as error:
            raise CommandError(f"cannot write {output}: {error.strerror}") from error
        self._say(NEXT_STEPS.format(file=output, series=len(grid.series), hosts=len(surveyed)))

    def _visit_all(self, names: Sequence[str], config: Path | None) -> list[SurveyedHost]:
        """Visit the hosts and print a line for each; return the hosts where probes can run."""
        usable: dict[str, SurveyedHost] = {}
        endpoints: dict[tuple[str, int, str], str] = {}  # names by address, port and user
        with ThreadPoolExecutor(CONCURRENT_LOGINS) as pool:
            for visit in pool.map(lambda name: _visit(name, config), names):
                surveyed, problem = visit.surveyed, visit.problem
                if surveyed is not None and not problem:
                    host = surveyed.host
                    first = endpoints.setdefault((host.address, host.port, host.user), host.name)
                    if first != host.name:
                        problem = f"the same account as {first}"
                    elif surveyed.name in usable:
                        problem = (
                            f"its name becomes {surveyed.name}, as that of {usable[surveyed.name].host.name}"
                        )
                    else:
                        usable[surveyed.name] = surveyed
                self._say(f"  {visit.name:<20} {problem or _describe(surveyed)}")
        if not usable:
            raise CommandError("probes can run at none of these hosts; docs/sites.md says what they need")
        return list(usable.values())

    def _propose(self, hosts: Sequence[SurveyedHost], config: str) -> tuple[GridDefinition, list[str]]:
        """Return a proposed grid and notes.

        Series that fail in a trial are left out, and a note describes each failure.
        """
        number = min(len(hosts), proposal.MAX_COPYING_HOSTS)
        self._say(f"Copying a file between all {number * (number - 1) // 2} pairs of {number} hosts ...")
        resources, failures = _try_copies(hosts, config)
        notes = [
            f"No copies between {source} and {target}: {facts.printable(reason)}"
            for (source, target), reason in failures.items()
        ]
        grid = proposal.grid(hosts, resources, failures)
        self._say("Running a small version of each series ...")
        series = dict(grid.series)
        for definition in grid.series.values():
            report = trials.trial(definition.probe, definition.bindings, _configs(resources))
            self._say(f"  {definition.name:<30} {report.outcome}")
            if trials.waited_in_a_queue(report):
                notes.append(f"Series {definition.name} was not tried to its end: its job waited in a queue")
            elif report.outcome != "passed":
                notes.append(f"Series {definition.name} is left out: {facts.printable(report.reason)}")
                del series[definition.name]
        for note in notes:
            self._say(f"  {note}")
        return replace(grid, series=series), notes

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()


def _check_output(output: Path, *, overwrite: bool) -> None:
    if output.exists() and not overwrite:
        raise CommandError(
            f"{output} exists; name another file with --output, or replace it with --overwrite"
        )
    directory = output.absolute().parent
    if not directory.is_dir():
        raise CommandError(f"--output: there is no directory {directory}")
    if output.is_dir() or not os.access(directory, os.W_OK):
        raise CommandError(f"--output: cannot write {output}")


def _configured(config: Path | None) -> list[str]:
    file = config or ssh_hosts.USER_CONFIGURATION
    try:
        names = ssh_hosts.configured_names(file)
    except OSError as error:
        raise CommandError(
            f"cannot read {file}: {error.strerror}; name hosts: manage.py init HOST ..."
        ) from None
    if not names:
        raise CommandError(f"{file} names no host; name hosts: manage.py init HOST ...")
    return names


def _visit(name: str, config: Path | None) -> Visit:
    """Log in to the host *name* and collect the facts about it; *config* is an SSH configuration."""
    try:
        host = ssh_hosts.resolve(name, config)
        shell = Shell(
            name, LABEL, host=host.alias, user=host.given_user, config_file=str(config) if config else None
        )
        try:
            shell.connect(timeout_seconds=LOGIN_SECONDS)
            found = facts.ask(shell)
        finally:
            shell.close()
    except (ssh_hosts.Unresolved, facts.NoShell, InvalidParameters, ProbeFailed) as error:
        return Visit(name, problem=facts.printable(str(error)))
    surveyed = SurveyedHost(host, found)
    return Visit(name, surveyed, "; ".join(surveyed.problems))


def _try_copies(
    hosts: Sequence[SurveyedHost], config: str
) -> tuple[dict[str, ResourceDefinition], dict[trials.Pair, str]]:
    """Return the resources through which most pairs of *hosts* can copy to each other.

    Also return the failures that remain, by pair. *config* is the path of an SSH configuration; empty: the
    user's.
    """
    by_address, by_name = (
        {host.name: proposal.resource(host, config, by_name=is_by_name) for host in hosts}
        for is_by_name in (False, True)
    )
    copying = [host.name for host in hosts[: proposal.MAX_COPYING_HOSTS]]
    failures = trials.copy_failures(copying, _configs(by_address))
    if failures:
        failures_by_name = trials.copy_failures(copying, _configs(by_name))
        if len(failures_by_name) < len(failures):
            return by_name, failures_by_name
    return by_address, failures


def _configs(resources: Mapping[str, ResourceDefinition]) -> dict[str, ResourceConfig]:
    return {name: resource.as_config() for name, resource in resources.items()}


def _describe(surveyed: SurveyedHost | None) -> str:
    """Return, in one line, the programs that probes can use at a host."""
    if surveyed is None:
        return ""
    found = surveyed.facts
    return ", ".join(
        [
            f"{found.system}, {found.cores} cores",
            f"Python {found.python}" if found.python else "no Python 3",
            f"{format_bytes(found.free_bytes)} free in {found.scratch}",
            "a C compiler" if found.has_compiler else "no C compiler",
            f"batch {' '.join(found.batch.values())}",
            f"copies by {', '.join(found.copy_tools) or 'nothing'}",
        ]
    )


def _header(hosts: Sequence[SurveyedHost], notes: Sequence[str]) -> str:
    lines = [
        f"A first grid, written by `manage.py init` on {timezone.now():%Y-%m-%d} from what it found:",
        *(f"  {host.name}: {_describe(host)}" for host in hosts),
        *notes,
        "Schedules are gentle, files are small; docs/grid-file.md and docs/probes.md say what else there is.",
    ]
    return "".join(f"# {' '.join(line.split()) if not line.startswith('  ') else line}\n" for line in lines)
