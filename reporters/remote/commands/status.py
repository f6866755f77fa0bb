"""``status``: what the reporter does, and what waits for delivery. Reads local files only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from reporters.remote import identity
from reporters.remote.agent.ownership import living_owner
from reporters.remote.errors import UsageFault
from reporters.remote.options import add_state, state_path
from reporters.remote.state_directory import PENDING_ASSIGNMENT, STATUS, StateDirectory, StateError
from reporters.spool.files import SpoolError
from reporters.spool.set_aside import REFUSED, count_aside
from reporters.spool.waiting import WaitingSpool
from reporters.usage import format_bytes

_NOT_RUNNING = 3


class Command:
    summary = "Show what the reporter does, and what waits for delivery; exit status 3 if it does not run."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument("--json", action="store_true", help="print the agent's own status file")

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        try:
            state = StateDirectory.open(state_path(options))
            agent = living_owner(state.path)
            if options.json:
                sys.stdout.write((state.read(STATUS) or b"{}\n").decode(errors="replace"))
            else:
                lines = _lines(state, agent, state.read_object(STATUS) or {})
                sys.stdout.write("".join(f"{name:<12} {text}\n" for name, text in lines))
        except (StateError, SpoolError) as error:
            raise UsageFault(str(error)) from None
        except OSError as error:
            raise UsageFault(f"cannot read {error.filename}: {error.strerror}") from None
        return 0 if agent else _NOT_RUNNING


def _lines(state: StateDirectory, agent: str, status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    me = identity.load(state)
    spool = WaitingSpool(state.spool).status()
    yield "reporter", f"{me.reporter} at {me.url}"
    yield "agent", f"{agent}, started {status.get('started_at')}" if agent else "not running"
    yield "as of", str(status.get("at") or "not run yet")
    if status.get("is_revoked"):
        yield "REVOKED", "the server revoked the key: nothing runs, the spool is kept; ask for a new code"
    yield "exchange", f"last at {status['exchanged_at']}" if status.get("exchanged_at") else "none yet"
    if status.get("error"):
        yield "ERROR", str(status["error"])
    version = status.get("assignment") or "none"
    yield "assignment", f"{version}{f': {error}' if (error := status.get('assignment_error')) else ''}"
    if (state.path / PENDING_ASSIGNMENT).exists():
        yield "approval", "an assignment waits: run `approve`"
    if agent:
        yield "runs", f"{len(status.get('in_flight') or ())} running, {status.get('waiting')} waiting"
    oldest = f", the oldest of {spool.oldest_at:%Y-%m-%d %H:%M:%S} UTC" if spool.oldest_at else ""
    yield "spool", f"{spool.records} records wait, {format_bytes(spool.bytes)}{oldest}"
    if spool.dropped_records:
        yield "DROPPED", f"{spool.dropped_records} records, which did not fit into the spool"
    refused = count_aside(state.spool / REFUSED)
    if refused.kept or refused.not_kept:
        yield (
            "REFUSED",
            f"{refused.kept} reports in {state.spool / REFUSED}, {refused.not_kept} were not kept",
        )
    if status.get("clock_offset_seconds") is not None:
        yield "clock", f"the server's is {status['clock_offset_seconds']:+.2f} s ahead of this host's"
