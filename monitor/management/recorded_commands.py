"""``manage.py`` finds its commands here: they write the audit record, and check the settings only."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.management import ManagementUtility
from django.core.management.base import ALL_CHECKS, CommandError
from django.db import DataError, IntegrityError, InternalError, OperationalError, transaction
from django.utils import timezone

from monitor.checks import SETTINGS
from monitor.depot.access.audit_trail import audit_trail
from monitor.management.caller import caller_name

if TYPE_CHECKING:
    from django.core.management.base import BaseCommand

    from monitor.depot.access.audit import Action

ANY: Collection[str] = ()  # every call of the command changes something
# The commands that change something, with the verbs that do; parsers call them ``verb``. A test asks for a
# decision on every command and every verb.
CHANGING: Mapping[str, Collection[str]] = {
    "access": {"grant", "revoke"},
    "account": ANY,
    "availability": {"recompute"},
    "depot": {
        *("accounts", "backup", "restore", "retain", "reparse"),
        *("migrate-to-timescale", "rebuild-rollups"),
    },
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
    "changepassword",  # refuses
    "createsuperuser",  # refuses
    "demo",
    "demo_reporters",
    "failures",
    "ledger",
    "prepare_demo",
    "report",
    "report_schema",
    "serve",
    "stats",
    "sweep",
    "testbed",
}
# These commit their work in parts, wait for others to continue it, or start jobs elsewhere: one event is
# written before their work, and one after it.
IN_PARTS = {"depot", "forecasts", "hold", "import", "reporter", "run"}
# These do not need the depot that has the record: ``init`` writes a file, and a restored depot begins empty.
WITHOUT_DEPOT = {("init", ""), ("depot", "restore")}


class RecordingUtility(ManagementUtility):
    """Django's command line, which writes an event for each command that changes something.

    Commands check the settings, which come from the environment. Django's other checks are of the code: they
    load all pages, which takes longer than most commands; ``manage.py check`` runs them.
    """

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        if command.requires_system_checks == ALL_CHECKS:
            command.requires_system_checks = [SETTINGS]
        if subcommand in CHANGING:
            command.execute = partial(record, command.execute, self.argv)  # type: ignore[method-assign]
        return command


def record(execute: Callable[..., Any], argv: Sequence[str], *args: Any, **options: Any) -> Any:
    """Call *execute* for the command of *argv*; if it changes something, write its event with the change.

    The verb is that of *options*, as the parser of the command has read it: a word of *argv* may belong to an
    option before it.

    Raises:
        CommandError: the event cannot be written, so nothing is changed.
    """
    name = argv[1]
    verbs = CHANGING[name]
    verb = options["verb"] if verbs else ""
    if verbs and verb not in verbs:
        return execute(*args, **options)
    has_depot = (name, verb) not in WITHOUT_DEPOT
    is_in_parts = name in IN_PARTS or not has_depot
    if is_in_parts and has_depot:
        _insert(argv, "begun")
    try:
        with audit_trail() as trail, contextlib.nullcontext() if is_in_parts else transaction.atomic():
            result = execute(*args, **options)
            if not is_in_parts:
                _insert(argv, "done", changes=trail)
    except OperationalError:  # without the depot; ``manage.py`` says what to do
        raise
    except BaseException as error:
        _write(argv, "failed", _exit_status(error))
        if isinstance(error, IntegrityError):
            _refuse_loss_of_last_administrator(error)
        raise
    if is_in_parts:
        _write(argv, "done", changes=trail)
    return result


def _exit_status(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return error.returncode if isinstance(error, CommandError) else 1


def _refuse_loss_of_last_administrator(error: IntegrityError) -> None:
    from monitor.depot.access import roles  # noqa: PLC0415  # Django has loaded the models by now

    if roles.takes_last_administrator(error):
        reason = str(error).partition("\n")[0]
        raise CommandError(f"nothing is changed: {reason}") from None


def _insert(argv: Sequence[str], outcome: str, **options: Any) -> None:
    from monitor.depot.access import audit  # noqa: PLC0415  # Django has loaded the models by now

    try:
        with transaction.atomic():
            audit.record(audit.Actor(caller_name()), _action(argv, outcome, 0), timezone.now(), **options)
    except (IntegrityError, DataError, InternalError) as error:
        reason = str(error).partition("\n")[0]
        detail = f"nothing is changed, because the audit record cannot be written: {reason}"
        raise CommandError(detail) from error


def _write(argv: Sequence[str], outcome: str, status: int = 0, **options: Any) -> None:
    from monitor.depot.access import audit  # noqa: PLC0415  # see above

    audit.write(audit.Actor(caller_name()), _action(argv, outcome, status), timezone.now(), **options)


def _action(argv: Sequence[str], outcome: str, status: int) -> Action:
    from monitor.depot.access.audit import Action  # noqa: PLC0415  # see above

    return Action("command", f"manage.py {argv[1]}", shlex.join(argv[2:]), outcome, status)
