"""``uninstall``: stop the agent and remove what ``install`` wrote; with ``--purge`` also its state."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from reporters.remote import options as common
from reporters.remote.errors import UsageFault
from reporters.remote.installation import RECORD, SiteInstallation
from reporters.remote.service import ServiceFault
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError
from reporters.spool.files import SpoolError
from reporters.spool.spool import pending_records


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
            "--drop-records", action="store_true", help="purge although results are not delivered yet"
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        path = common.state_path(options)
        if not path.exists():
            sys.stdout.write(f"nothing to remove: there is no {path}\n")
            return 0
        try:
            state = StateDirectory.open(path)
            if options.purge:
                _check_purge(state, options)
            kind = SiteInstallation(path).remove()
            sys.stdout.write(f"removed: {kind}\n" if kind else "no service was installed\n")
            if options.purge:
                _purge(state, options)
        except (StateError, ServiceFault) as error:
            raise UsageFault(str(error)) from None
        except OSError as error:
            raise UsageFault(f"cannot remove {error.filename}: {error.strerror}") from None
        return 0


def _check_purge(state: StateDirectory, options: argparse.Namespace) -> None:
    """Raise UsageFault unless *state* is a reporter's, its results are delivered, and the user agrees."""
    if Path.home().is_relative_to(state.path) or not any(
        (state.path / name).exists() for name in (IDENTITY, RECORD)
    ):
        raise UsageFault(f"--purge: {state.path} is not the state directory of a reporter")
    _check_spool(state, options)
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageFault(f"--purge removes {state.path} with the private key; confirm with --yes")
    sys.stdout.write(f"Remove {state.path} with the private key of this reporter? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageFault("nothing was removed")


def _purge(state: StateDirectory, options: argparse.Namespace) -> None:
    _check_spool(state, options)  # once more: runs that ended while the agent stopped
    shutil.rmtree(state.path)
    sys.stdout.write(f"removed: {state.path}\n")


def _check_spool(state: StateDirectory, options: argparse.Namespace) -> None:
    if options.drop_records:
        return
    try:
        records = pending_records(state.spool)
    except SpoolError as error:
        raise UsageFault(f"--purge: {error}; --drop-records removes it unread") from None
    if records:
        raise UsageFault(
            f"--purge: {state.spool} has {records} records that are not delivered; start the agent and wait "
            "until `status` shows an empty spool, or lose them with --drop-records"
        )
