"""``preview``: print the bytes that leave the site under its policy. Nothing is sent."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from datetime import datetime, timezone

import probes
from reporters.config import Assignment, ResourceConfig
from reporters.remote import identity, local_run
from reporters.remote.agent.exchange_document import (
    AgentActivity,
    HeldAssignment,
    SpoolState,
    exchange_document,
)
from reporters.remote.agent.gate import PolicyGate
from reporters.remote.assignment import AssignmentRefused, SiteAssignment
from reporters.remote.assignment_store import AssignmentStore
from reporters.remote.errors import UsageFault
from reporters.remote.gateway import exchange_body
from reporters.remote.options import add_state, state_path
from reporters.remote.signing.base import SigningError
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError
from reporters.report import MalformedReport, Report
from reporters.run import run
from reporters.skipped import skipped
from reporters.spool.files import SpoolError
from reporters.spool.records import encode_parts
from reporters.spool.waiting import WaitingSpool


class Command:
    summary = "Print the bytes that leave the site under its policy; nothing is sent."

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        add_state(parser)
        parser.add_argument(
            "name",
            nargs="?",
            default="",
            metavar="SERIES|PROBE",
            help="run it once and print its report as it would be sent; "
            "default: the next exchange, and the records in the spool",
        )
        local_run.add_options(parser)

    @staticmethod
    def run(options: argparse.Namespace) -> int:
        path = state_path(options)
        try:
            if options.name:
                _preview_run(StateDirectory.create(path), options)
            else:
                _preview_requests(StateDirectory.open(path))
        except (StateError, AssignmentRefused, SigningError, SpoolError, MalformedReport) as error:
            raise UsageFault(str(error)) from None
        return 0


def _preview_run(state: StateDirectory, options: argparse.Namespace) -> None:
    """Run a series or a probe, unless the policy refuses it, and print the report."""
    gate, now = PolicyGate(state), datetime.now(timezone.utc)
    assigned = _in_force(state)
    resources: Iterable[ResourceConfig]
    if assigned is not None and options.name in assigned.series:
        slot = now.replace(second=0, microsecond=0)
        task = assigned.run_of(assigned.series[options.name], slot)
        resources = assigned.resources.values()
    elif options.name not in probes.names():
        assigned_names = ", ".join(assigned.series if assigned else ()) or "none"
        raise UsageFault(
            f"{options.name!r} is neither a series in force here ({assigned_names}) nor a probe "
            f"({', '.join(probes.names())})"
        )
    else:
        task = local_run.assignment(options.name, options)
        resources = task.resources.values()
    body = gate.disclosed(_report(gate, task, now), resources)
    _write(f"the report of {options.name}; disclosure: {gate.policy.disclosure}", body)


def _report(gate: PolicyGate, task: Assignment, now: datetime) -> Report:
    admission = gate.admit(task, gate.policy, running_runs=0, now=now)
    return skipped(task, admission.reason) if admission.assignment is None else run(admission.assignment)


def _in_force(state: StateDirectory) -> SiteAssignment | None:
    if state.read(IDENTITY) is None:
        return None
    signed = AssignmentStore(state, identity.load(state)).current()
    return None if signed is None else signed.assignment


def _preview_requests(state: StateDirectory) -> None:
    me, gate, spool = identity.load(state), PolicyGate(state), WaitingSpool(state.spool)
    assigned, store = _in_force(state), AssignmentStore(state, me)
    document = exchange_document(
        AgentActivity(datetime.now(timezone.utc)),
        HeldAssignment(assigned.version if assigned else 0, "", store.has_pending),
        gate.status(),
        SpoolState(spool.status(), spool.heads()),
        None,
        (),
    )
    told = gate.disclosed_status(document, assigned.resources.values() if assigned else ())
    where = f"POST {me.url}/api/v1/reporters/{me.reporter}"
    _write(
        f"{where}/exchange, from an agent that starts now; one that has run adds its runs in flight, the "
        f"offset of its clock, and messages; disclosure: {gate.policy.disclosure}",
        exchange_body(told, time.time()),
    )
    for parts in spool.batches():
        records = sum(len(part.records) for part in parts)
        _write(f"{where}/records, {records} records, compressed with gzip", encode_parts(parts))


def _write(what: str, body: bytes) -> None:
    """Write *what* to stderr, and *body* with a newline to stdout."""
    sys.stdout.flush()
    sys.stderr.write(f"{what}; {len(body)} bytes:\n")
    sys.stderr.flush()
    sys.stdout.buffer.write(body if body.endswith(b"\n") else body + b"\n")
    sys.stdout.buffer.flush()
