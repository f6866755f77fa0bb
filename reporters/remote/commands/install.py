"""``install``: have the site start the agent after every boot and keep it running."""

from __future__ import annotations

import argparse
import os
import sys

from reporters.remote import options as common
from reporters.remote import services
from reporters.remote.errors import UsageFault
from reporters.remote.installation import SiteInstallation, direct_command, own_content
from reporters.remote.service import Launch, ServiceFault
from reporters.remote.state_directory import StateDirectory, StateError

UNCHANGED = "unchanged"


class Command:
    summary = "Have this site start the agent after every boot and keep it running."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        common.add_state(parser)
        kinds = ", ".join(f"{name} ({services.load(name).summary})" for name in services.by_preference())
        parser.add_argument(
            "--kind",
            choices=services.by_preference(),
            help=f"default: as installed, else the first that this site has of {kinds}",
        )
        parser.add_argument(
            "--job-option",
            action="append",
            metavar="OPTION",
            help="option of the Slurm job, such as --account=physics; may be repeated (default: as before)",
        )
        parser.add_argument(
            "--keep-environment",
            action="store_true",
            help="start the agent with the PATH and the proxy of the earlier `install`, not those of now",
        )
        parser.add_argument(
            "--restart", action="store_true", help="restart a running agent even if nothing changed"
        )
        parser.add_argument(
            "--print", action="store_true", help="print the unit, crontab lines or job script; change nothing"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        state = common.state_path(options)
        installation = SiteInstallation(state)
        try:
            installed = installation.record()
            kind = options.kind or (installed.kind if installed else _first_available(Launch(state)))
            job_options = options.job_option or (installed.options if installed else [])
            if options.print:
                return _print(kind, Launch(state, job_options, direct_command(state)))
            StateDirectory.open(state)
            reason = services.load(kind)(Launch(state)).unavailable()
            if reason:
                raise UsageFault(f"cannot install a {services.load(kind).summary} here: {reason}")
            doubt = services.load(kind)(Launch(state)).doubt()
            if doubt:
                sys.stderr.write(f"warning: {doubt}\n")
            variables = installed.variables if installed and options.keep_environment else os.environ
            service, has_started = installation.install(
                kind, job_options, own_content(), variables, restarts=options.restart
            )
            verb = "installed" if has_started else UNCHANGED
            sys.stdout.write(f"{verb}: {service.summary}; {service.status()}\n")
        except (StateError, ServiceFault) as error:
            raise UsageFault(str(error)) from None
        except OSError as error:
            raise UsageFault(f"cannot write {error.filename}: {error.strerror}") from None
        return 0


def _print(kind: str, launch: Launch) -> int:
    service = services.load(kind)(launch)
    sys.stderr.write(f"{service.by_hand()}\n")
    sys.stdout.write(service.text())
    return 0


def _first_available(launch: Launch) -> str:
    reasons, doubted = [], []
    for name in services.by_preference():
        service = services.load(name)(launch)
        reason = service.unavailable()
        if not reason:
            if not service.doubt():
                return name
            doubted.append(name)
            continue
        reasons.append(f"  {name}: {reason}")
    if doubted:  # the caller warns
        return doubted[0]
    raise UsageFault(
        "this site has no way to start the agent after a boot:\n"
        + "\n".join(reasons)
        + f"\nKeep this command running by other means: {' '.join(direct_command(launch.state))}"
    )
