"""``approve``: show how the waiting assignment differs from the one in force, and put it in force."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from reporters.remote import identity
from reporters.remote.agent.ownership import wake_owner
from reporters.remote.assignment import AssignmentRefused
from reporters.remote.assignment_store import AssignmentStore, SignedAssignment
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.policy.changes import changes
from reporters.remote.signing.base import SigningError
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.report import rfc3339

_NOT_HERE = "no agent runs on this host; one on another host follows it within a minute"


class Command:
    summary = "Show what a waiting assignment changes, and put it in force."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument(
            "--yes",
            nargs="?",
            type=int,
            const=0,
            metavar="VERSION",
            help="approve without a question; with a version, only if that version waits",
        )

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            state = StateDirectory.open(state_path(options))
            store = AssignmentStore(state, identity.load(state))
            waiting = store.pending()
            if waiting is None:
                return _nothing_waits(options)
            current = _in_force(store)
            sys.stdout.write(_shown(current, waiting))
            _confirm(waiting.assignment.version, options)
            store.approve(waiting)
        except (StateError, AssignmentRefused, SigningError) as error:
            raise UsageFault(str(error)) from None
        follows = "the running agent follows it now" if wake_owner(state.path) else _NOT_HERE
        sys.stdout.write(f"version {waiting.assignment.version} is in force; {follows}\n")
        return 0


def _nothing_waits(options: argparse.Namespace) -> int:
    if options.yes:
        raise UsageFault(f"version {options.yes} does not wait for approval; nothing does")
    sys.stdout.write("nothing waits for approval\n")
    return 0


def _in_force(store: AssignmentStore) -> SignedAssignment | None:
    try:
        return store.current()
    except (AssignmentRefused, StateError) as error:
        sys.stdout.write(f"The assignment in force cannot be used: {error}\n")
        return None


def _shown(current: SignedAssignment | None, waiting: SignedAssignment) -> str:
    in_force = f"version {current.assignment.version}" if current else "nothing"
    new = waiting.assignment
    lines = changes(_document(current) if current else None, _document(waiting))
    return f"{in_force} is in force; version {new.version} of {rfc3339(new.issued_at)} changes:\n{lines}\n"


def _document(signed: SignedAssignment) -> dict[str, Any]:
    return dict(json.loads(signed.document))


def _confirm(version: int, options: argparse.Namespace) -> None:
    """Raise UsageFault unless the operator agrees to *version*."""
    if options.yes not in (None, 0, version):
        raise UsageFault(f"version {options.yes} does not wait for approval; version {version} does")
    if options.yes is not None:
        return
    if not sys.stdin.isatty():
        raise UsageFault(f"nothing was approved; confirm with --yes {version}")
    sys.stdout.write(f"Put version {version} in force? [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise UsageFault("nothing was approved")
