"""``install``: have the site start the agent after every boot and keep it running."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from reporters.remote import services
from reporters.remote.errors import UsageFault
from reporters.remote.installation import SiteInstallation, direct_command, own_content
from reporters.remote.service import AgentService, Launch, ServiceFault
from reporters.remote.state_directory import StateDirectory, StateError, default_path


class Command:
    summary = "Have this site start the agent after every boot and keep it running."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--state",
            type=Path,
            default=default_path(os.environ),
            metavar="DIRECTORY",
            help="state directory of the agent (default: %(default)s)",
        )
        kinds = ", ".join(f"{name} ({services.load(name).summary})" for name in services.by_preference())
        parser.add_argument(
            "--kind", choices=services.by_preference(), help=f"default: the first usable of {kinds}"
        )
        parser.add_argument(
            "--job-option",
            action="append",
            default=[],
            metavar="OPTION",
            help="option of the Slurm job, such as --account=physics; may be repeated",
        )
        parser.add_argument(
            "--print", action="store_true", help="print the unit, crontab lines or job script; change nothing"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        state = Path(os.path.abspath(options.state))  # noqa: PTH100  # links stay: they outlive a moved disk
        launch = Launch(state, options.job_option)
        kind = options.kind or _first_available(launch)
        if options.print:
            direct = Launch(state, options.job_option, direct_command(state))
            service = services.load(kind)(direct)
            sys.stderr.write(f"{service.by_hand()}\n")
            sys.stdout.write(service.text())
            return 0
        reason = services.load(kind)(launch).unavailable()
        if reason:
            raise UsageFault(f"cannot install a {services.load(kind).summary} here: {reason}")
        service = _installed(state, kind, options.job_option)
        sys.stdout.write(f"installed: {service.summary}; {service.status()}\n")
        return 0


def _first_available(launch: Launch) -> str:
    reasons = []
    for name in services.by_preference():
        reason = services.load(name)(launch).unavailable()
        if not reason:
            return name
        reasons.append(f"  {name}: {reason}")
    raise UsageFault(
        "this site has no way to start the agent after a boot:\n"
        + "\n".join(reasons)
        + f"\nKeep this command running by other means: {' '.join(direct_command(launch.state))}"
    )


def _installed(state: Path, kind: str, job_options: list[str]) -> AgentService:
    try:
        StateDirectory.open(state)
        return SiteInstallation(state).install(kind, job_options, own_content(), os.environ)
    except (StateError, ServiceFault) as error:
        raise UsageFault(str(error)) from None
    except OSError as error:
        raise UsageFault(f"cannot write {error.filename}: {error.strerror}") from None
