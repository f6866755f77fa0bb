"""Each command that changes something is in the audit record, however its options are written."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import get_commands
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import connection
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.management.recorded_commands import (
    ANY,
    CHANGING,
    IN_PARTS,
    READING,
    WITHOUT_DEPOT,
    RecordingUtility,
)
from monitor.models import ApiToken, AuditEvent, Series
from monitor.models.role import UserRole
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[4]
OWN = sorted(name for name, app in get_commands().items() if app == "monitor")
# The verbs that change nothing, of commands of which some verbs change something.
READING_VERBS: Mapping[str, Collection[str]] = {
    "access": {"list"},
    "availability": {"show"},
    "depot": {"status"},
    "forecasts": {"status"},
    "grid": {"example", "export", "plan", "reference", "schema", "validate"},
    "hold": {"list"},
    "maintenance": {"export", "log"},
    "ping_key": {"list"},
    "reporter": set(),
    "token": {"list"},
}
# Options of every command, with the values that they take as a word of their own.
OPTIONS = [
    [],
    ["-v", "2"],
    ["-v2"],
    ["--verbosity", "0"],
    ["--verbosity=1"],
    ["--settings", "monitor.settings"],
    ["--settings=monitor.settings"],
    ["--pythonpath", str(ROOT)],
    [f"--pythonpath={ROOT}"],
    ["--no-color", "--traceback", "-v", "1"],
]
# Of commands whose verb has no parser of its own: what follows the verb.
WORDS = {"availability recompute": ["ncsa"], "availability show": ["ncsa"]}


def fetched(*argv: str) -> BaseCommand:
    """Return the command of *argv*, as ``manage.py`` fetches it; it prints nothing."""
    command = RecordingUtility(["manage.py", *argv]).fetch_command(argv[0])
    command.stdout, command.stderr = (OutputWrapper(StringIO()) for _ in range(2))
    return command


def parsed(command: BaseCommand, *argv: str) -> dict[str, Any]:
    return vars(command.create_parser("manage.py", argv[0]).parse_args(argv[1:]))


def execute(*argv: str) -> list[tuple[str, str, str, int]]:
    """Execute a command as ``manage.py`` does, in the connection of the test; return all events."""
    command = fetched(*argv)
    with contextlib.suppress(CommandError):
        command.execute(**parsed(command, *argv))
    return list(AuditEvent.objects.order_by("pk").values_list("action", "target", "outcome", "status"))


def test_each_command_has_a_decision_on_its_record() -> None:
    assert set(CHANGING) & READING == set()
    assert set(OWN) ^ (set(CHANGING) | READING) == set()


def verbs_of(name: str) -> dict[str, argparse.ArgumentParser | None]:
    """Return the verbs that the parser of the command *name* knows, with the parsers of their own, if any."""
    if name == "availability":  # its verb may be missing
        return {"recompute": None, "show": None}
    verbs: dict[str, argparse.ArgumentParser | None] = {}
    for action in fetched(name).create_parser("manage.py", name)._actions:
        if action.dest == "verb" and action.choices is not None:
            parsers = action.choices if isinstance(action.choices, dict) else {}
            verbs |= {str(verb): parsers.get(verb) for verb in action.choices}
    return verbs


def with_verbs() -> list[tuple[str, str]]:
    return [(name, verb) for name in OWN if CHANGING.get(name) for verb in sorted(verbs_of(name))]


@pytest.mark.parametrize("name", [name for name in OWN if CHANGING.get(name)])
def test_each_verb_has_a_decision_on_its_record(name: str) -> None:
    assert set(verbs_of(name)) ^ (set(CHANGING[name]) | set(READING_VERBS[name])) == set()
    assert set(CHANGING[name]) & set(READING_VERBS[name]) == set()


def test_what_is_said_of_a_command_is_of_one_that_changes_something() -> None:
    assert set(CHANGING) >= IN_PARTS
    for name, verb in WITHOUT_DEPOT:
        assert verb in CHANGING[name] if verb else CHANGING[name] == ANY


@pytest.mark.parametrize(("name", "verb"), with_verbs())
def test_a_verb_is_recorded_wherever_the_options_stand(name: str, verb: str) -> None:
    """The work itself is left out: what is asked is whether its events and its transaction are there."""
    is_changing, is_in_parts = verb in CHANGING[name], name in IN_PARTS
    outcomes = ["begun", "done"] if is_in_parts and (name, verb) not in WITHOUT_DEPOT else ["done"]
    words = [*([] if verb == "show" else [verb]), *required_words(name, verb)]
    for options in OPTIONS:
        argv = [name, *options, *words]
        depths: list[int] = []
        outside, known = len(connection.savepoint_ids), AuditEvent.objects.count()
        command = fetched(*argv)
        command.handle = partial(_note_depth, depths)  # type: ignore[method-assign]
        command.execute(**parsed(command, *argv))
        events = list(AuditEvent.objects.order_by("pk")[known:].values_list("action", "target", "outcome"))
        expected = [(f"manage.py {name}", shlex.join(argv[1:]), outcome) for outcome in outcomes]
        assert events == (expected if is_changing else []), argv
        assert depths == [outside + (is_changing and not is_in_parts)], argv


@pytest.mark.parametrize("name", [name for name in OWN if CHANGING.get(name) == ANY])
def test_a_command_without_verbs_is_recorded_whatever_follows(name: str) -> None:
    command = fetched(name, "-v", "2")
    command.handle = partial(_note_depth, [])  # type: ignore[method-assign]
    command.execute(force_color=False, no_color=True, skip_checks=True, stdout=None, stderr=None)
    assert AuditEvent.objects.get(outcome="done").target == "-v 2"


def _note_depth(depths: list[int], **_: Any) -> None:
    depths.append(len(connection.savepoint_ids))


def required_words(name: str, verb: str) -> list[str]:
    """Return words that satisfy the parser of *verb*."""
    parser = verbs_of(name)[verb]
    if parser is None:
        return WORDS.get(f"{name} {verb}", [])
    needed = [action for action in parser._actions if action.required]
    needed += [group._group_actions[0] for group in parser._mutually_exclusive_groups if group.required]
    words: list[str] = []
    for action in needed:
        value = str(next(iter(action.choices or ["2"])))
        words += [*action.option_strings[:1], value]
    return words


def test_a_verb_is_one_also_where_the_value_of_an_option_looks_like_another() -> None:
    builders.user("list", is_superuser=True)
    ada = builders.user("ada")
    assert execute("access", "-v", "2", "grant", "ada", "administrator") == [
        ("manage.py access", "-v 2 grant ada administrator", "done", 0)
    ]
    assert Grant(UserRole.ADMINISTRATOR) in roles.grants_of(User.objects.get(pk=ada.pk))
    execute("token", "--verbosity", "0", "issue", "list", "--scope", "manage")
    assert ApiToken.objects.get().user.username == "list"
    assert AuditEvent.objects.latest("pk").action == "manage.py token"


def test_commands_that_change_something_are_recorded_with_their_arguments() -> None:
    builders.user("bob")
    assert execute("access", "list") == []
    assert execute("access", "grant", "bob", "viewer") == [
        ("manage.py access", "grant bob viewer", "done", 0)
    ]
    event = AuditEvent.objects.get()
    assert event.user.endswith("(command line)")
    assert event.changes[0]["name"] == "bob: viewer"


def test_commands_record_what_they_changed(circle: Series, tmp_path: Path) -> None:
    file = tmp_path / "grid.yaml"
    file.write_text("version: 1\nsites:\n  rice: {}\n")
    execute("grid", "apply", str(file))
    execute("hold", "pause", "--series=circle", "--why=disk swap")
    execute("hold", "resume", "--series=circle", "--why=new disks")
    done = AuditEvent.objects.filter(outcome="done").order_by("pk")
    changes = [(change["kind"], change["name"]) for event in done for change in event.changes]
    assert changes == [("site", "rice"), ("series", "circle"), ("series", "circle")]


def test_a_failed_command_is_recorded_with_its_exit_status() -> None:
    assert execute("access", "grant", "stranger", "viewer") == [
        ("manage.py access", "grant stranger viewer", "failed", 1)
    ]


def test_a_command_that_works_in_parts_is_recorded_before_it_works() -> None:
    place = "pause --series=none --why=x"
    assert execute("hold", *place.split()) == [
        ("manage.py hold", place, "begun", 0),
        ("manage.py hold", place, "failed", 1),
    ]


@pytest.mark.parametrize("is_dry_run", [False, True])
def test_commands_about_maintenance_list_the_windows_that_they_change(
    circle: Series, tmp_path: Path, is_dry_run: bool
) -> None:
    file = tmp_path / "feed.ics"
    days = [f"{timezone.now() + timedelta(days=days):%Y%m%dT%H%M%SZ}" for days in (1, 2)]
    file.write_text(
        "\r\n".join(
            [
                *("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:1", "SUMMARY:New disks"),
                *(f"DTSTART:{days[0]}", f"DTEND:{days[1]}", "END:VEVENT", "END:VCALENDAR", ""),
            ]
        )
    )
    options = ["--format=ical", "--site=site-of-here", *(["--dry-run"] if is_dry_run else [])]
    execute("maintenance", "import", str(file), *options)
    changes = AuditEvent.objects.get(action="manage.py maintenance").changes
    assert [change["kind"] for change in changes] == ["maintenance"] * (not is_dry_run)


def test_a_declared_window_is_listed_with_what_is_recomputed(circle: Series) -> None:
    times = ["--from=2026-03-01T08:00Z", "--until=2026-03-01T09:00Z"]
    execute("maintenance", "declare", "disks", "--site=site-of-here", *times, "--reason=new disks")
    changes = AuditEvent.objects.get(action="manage.py maintenance").changes
    assert [(change["kind"], change["name"]) for change in changes] == [
        ("maintenance", "disks"),
        ("availability", "site-of-here"),
    ]
