"""``uninstall``: stop the agent and remove what ``install`` wrote; with ``--purge`` also its state."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import sys
from pathlib import Path

from reporters.account import own_home
from reporters.remote import options as common
from reporters.remote.errors import UsageFault
from reporters.remote.installation import RECORD, SiteInstallation
from reporters.remote.service import ServiceFault
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError

_DELIVER_SECONDS = 60.0


class Command:
    summary = "Stop the agent and remove what `install` wrote."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        common.add_state(parser)
        parser.add_argument(
            "--purge", action="store_true", help="also remove the state directory: keys, assignment and spool"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask before --purge removes it")
        parser.add_argument(
            "--deliver-seconds",
            type=float,
            default=_DELIVER_SECONDS,
            metavar="SECONDS",
            help="how long --purge delivers the results in the spool before (default: %(default)g)",
        )
        parser.add_argument(
            "--drop-records", action="store_true", help="purge although results are not delivered"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        path = common.state_path(options)
        if not path.exists():
            sys.stdout.write(f"nothing to remove: there is no {path}\n")
            return 0
        try:
            state, installation = StateDirectory.open(path), SiteInstallation(path)
            if options.purge:
                _check_purge(state, has_consent=options.yes)
            service = installation.service()
            if service is not None:
                service.remove()
            _check_owner(path)
            if options.purge:  # before the files go: this command may be one of them
                _deliver(state, options.deliver_seconds, drops_records=options.drop_records)
            installation.remove()
            sys.stdout.write(f"removed: {service.summary}\n" if service else "no service was installed\n")
            if options.purge:
                shutil.rmtree(path)
                _remove_empty_parents(path)
                sys.stdout.write(f"removed: {path}\n")
        except (StateError, ServiceFault) as error:
            raise UsageFault(str(error)) from None
        except OSError as error:
            raise UsageFault(f"cannot remove {error.filename}: {error.strerror}") from None
        return 0


def _check_purge(state: StateDirectory, *, has_consent: bool) -> None:
    """Raise UsageFault unless *state* is a reporter's and the user consents to its removal."""
    is_reporters = any((state.path / name).exists() for name in (IDENTITY, RECORD))
    if own_home().is_relative_to(state.path) or not is_reporters:
        raise UsageFault(f"--purge: {state.path} is not the state directory of a reporter")
    if has_consent:
        return
    if not sys.stdin.isatty():
        raise UsageFault(f"--purge removes {state.path} with the private key; confirm with --yes")
    sys.stdout.write(f"Remove {state.path} with the private key of this reporter? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageFault("nothing was removed")


def _check_owner(state: Path) -> None:
    """Raise UsageFault if an agent on another host, which shares the file system, owns *state*."""
    # Here, because the help of every command loads this module.
    from reporters.remote.agent.ownership import DIRECTORY  # noqa: PLC0415
    from reporters.spool.owner import OWNER, Process  # noqa: PLC0415

    file = state / DIRECTORY / OWNER
    owner = Process.from_text(file.read_text(errors="replace")) if file.exists() else None
    if owner is not None and owner.host != socket.gethostname():
        raise UsageFault(
            f"an agent on {owner.host}, process {owner.pid}, owns {state}: run `uninstall` there, or remove "
            f"{file} if that host is gone"
        )


def _remove_empty_parents(path: Path) -> None:
    """Remove the directories between the home directory and *path* that are empty now."""
    for parent in path.parents:
        if parent == own_home() or not parent.is_relative_to(own_home()):
            return
        try:
            parent.rmdir()
        except OSError:
            return


def _deliver(state: StateDirectory, within_seconds: float, *, drops_records: bool) -> None:
    """Deliver the spool. Raises UsageFault if records remain, unless *drops_records*."""
    # Here, because the help of every command loads this module.
    from reporters.remote.drain import drain  # noqa: PLC0415
    from reporters.spool.files import SpoolError  # noqa: PLC0415
    from reporters.spool.spool import pending_records  # noqa: PLC0415

    try:
        if pending_records(state.spool):
            with contextlib.suppress(StateError):  # not enrolled: the records stay
                drain(state, within_seconds)
        left = pending_records(state.spool)
        problem = f"{left} records that are not delivered, see {state.path}/agent.log" if left else ""
    except SpoolError as error:
        problem = f"records that cannot be read: {error}"
    if problem and not drops_records:
        raise UsageFault(
            f"--purge: {state.spool} has {problem}. The agent is stopped, its directory stays: `install` "
            "starts it again, --drop-records gives the records up"
        )
