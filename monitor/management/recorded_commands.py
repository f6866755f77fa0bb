"""Write the audit record of commands: ``manage.py`` calls ``run`` with its arguments."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence

from django.utils import timezone

from monitor.access.audit_trail import Trail, audit_trail
from monitor.management.caller import caller_name

ANY: Collection[str] = ()  # every call of the command changes something
# The commands that change something, with the verbs that do. A test asks for a decision on every command.
CHANGING: Mapping[str, Collection[str]] = {
    "access": {"grant", "revoke"},
    "account": ANY,
    "availability": {"recompute"},
    "changepassword": ANY,
    "createsuperuser": ANY,
    "depot": {"backup", "restore", "retain", "reparse", "migrate-to-timescale", "rebuild-rollups"},
    "failures": {"classify"},
    "forecasts": {"rebuild"},
    "grid": {"apply"},
    "hold": {"pause", "drain", "resume"},
    "import": ANY,
    "init": ANY,
    "maintenance": {"import", "declare"},
    "ping_key": {"create", "revoke"},
    "reporter": {"deploy", "upgrade", "remove"},
    "run": ANY,
    "token": {"issue", "rotate", "revoke"},
}
READING = {
    "audit",
    "demo",
    "demo_reporters",
    "ledger",
    "prepare_demo",
    "report",
    "report_schema",
    "serve",
    "stats",
    "testbed",
}
MISUSED = 2  # the exit status of a call with invalid options


def run(execute: Callable[[list[str]], None], argv: list[str]) -> None:
    """Execute the command of *argv*; if it changes something, write an event with its exit status."""
    if not changes(argv):
        execute(argv)
        return
    with audit_trail() as trail:
        try:
            execute(argv)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
            if status != MISUSED:
                _write(argv, status, trail)
            raise
        _write(argv, 0, trail)


def changes(argv: Sequence[str]) -> bool:
    """Return whether the command of *argv* changes something."""
    words = [word for word in argv[1:] if not word.startswith("-")]
    if not words or words[0] not in CHANGING or {"-h", "--help"} & set(argv):
        return False
    verbs = CHANGING[words[0]]
    return not verbs or bool(set(verbs) & set(words[1:2]))


def _write(argv: Sequence[str], status: int, trail: Trail) -> None:
    from monitor.access import audit  # noqa: PLC0415  # the models are loaded by the command
    from monitor.models.audit_event import AuditChannel, AuditOutcome  # noqa: PLC0415

    action = audit.Action(
        channel=AuditChannel.COMMAND,
        action=f"manage.py {argv[1]}",
        target=shlex.join(argv[2:]),
        outcome=AuditOutcome.FAILED if status else AuditOutcome.DONE,
        status=status,
    )
    audit.write(audit.Actor(caller_name()), action, timezone.now(), trail)
