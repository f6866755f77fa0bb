"""Plan, apply and prune: what is shown is what is done, all of it or nothing, and no history is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from monitor.gridfile import depot
from monitor.gridfile.applying import apply, changing
from monitor.gridfile.definition import Grid as Definitions
from monitor.ledger import transitions
from monitor.ledger.expand import expand
from monitor.ledger.run_now import run_now
from monitor.models import Alert, AlertRule, MaintenanceWindow, Resource, Run, Series, Site, Suite
from monitor.models.run import State
from tests.monitor.gridfile.conftest import Grid
from tests.waiting import eventually

EMPTY = Definitions()
ROOT = Path(__file__).resolve().parents[3]
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NOTHING_TO_DO = "Nothing to do: the depot is as the file says.\n"


@pytest.fixture
def file(whole: str, operators: Group, tmp_path: Path) -> Path:
    """The whole file, where it can be edited."""
    (tmp_path / "grid.yaml").write_text(whole, encoding="utf-8")
    return tmp_path / "grid.yaml"


def edit(file: Path, old: str, new: str) -> Path:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def test_a_file_becomes_the_depot(grid: Grid, file: Path) -> None:
    assert grid("apply", file)[0] == 0
    series = Series.objects.get(name="gather-main")
    assert (series.suite.name, series.probe, series.reporter.name) == ("main", "gather", "home")
    assert (series.schedule, series.timezone, series.limit_seconds) == ("H * * * *", "Europe/Berlin", 600.0)
    assert series.ends_at == datetime(2027, 1, 1, tzinfo=UTC)
    assert series.parameters == {"file_bytes": 1000, "result_bytes": 5000}
    assert list(series.bindings.values_list("role", "resource__name")) == [
        ("compute", "login-anl"),
        ("destination", "login-sdsc"),
        ("sources", "login-anl"),
    ]
    assert [group.name for group in Suite.objects.get().viewers.all()] == ["operators"]
    assert Resource.objects.get(name="login-anl").shell["port"] == 22


def test_macros_are_series_like_any_other(grid: Grid, file: Path) -> None:
    grid("apply", file)
    assert set(Series.objects.exclude(name="gather-main").values_list("name", flat=True)) == {
        "login-anl",
        "login-sdsc",
        "disk-4096",
        "disk-8192",
        "ping-login-anl-login-sdsc",
        "ping-login-sdsc-login-anl",
    }
    assert Series.objects.get(name="disk-8192").parameters == {"file_bytes": 8192}
    ping = Series.objects.get(name="ping-login-sdsc-login-anl")
    assert list(ping.bindings.values_list("role", "resource__name")) == [
        ("client", "login-sdsc"),
        ("server", "login-anl"),
    ]


def test_a_plan_shows_what_would_be_added_and_changes_nothing(grid: Grid, file: Path) -> None:
    status, said = grid("plan", file)
    assert status == 0
    assert '+ site anl\n    title: "Argonne"\n+ site sdsc\n+ resource login-anl\n    site: "anl"\n' in said
    assert '    bindings.sources: ["login-anl"]\n' in said
    assert said.endswith("\n18 to add, 0 to change, 0 to remove.\n")
    assert depot.read() == EMPTY


def test_an_applied_file_has_nothing_to_do_again(grid: Grid, file: Path) -> None:
    grid("apply", file)
    assert grid("plan", file) == (0, NOTHING_TO_DO)
    assert grid("apply", file) == (0, NOTHING_TO_DO)


def test_what_an_apply_says_is_what_the_plan_said(grid: Grid, file: Path) -> None:
    planned = grid("plan", file)
    assert grid("apply", file) == planned


def test_a_plan_can_say_by_its_exit_status_whether_there_is_something_to_do(grid: Grid, file: Path) -> None:
    assert grid("plan", "--exit-code", file)[0] == 2
    grid("apply", file)
    assert grid("plan", "--exit-code", file)[0] == 0


def test_a_change_is_shown_with_what_was_and_what_will_be(grid: Grid, file: Path) -> None:
    grid("apply", file)
    edit(file, "enabled: true", "enabled: false")
    edit(file, "result_bytes: 5000", "parallel: 4")
    edit(file, "destination: [login-sdsc]", "destination: [login-anl]")
    edit(file, "title: Main, viewers: [operators]", "title: Everything")
    assert grid("apply", file)[1] == (
        "~ suite main\n"
        '    title: "Main" -> "Everything"\n'
        '    viewers: ["operators"] -> []\n'
        "~ series gather-main\n"
        '    bindings.destination: ["login-sdsc"] -> ["login-anl"]\n'
        "    parameters.parallel: nothing -> 4\n"
        "    parameters.result_bytes: 5000 -> nothing\n"
        "    enabled: true -> false\n"
        "0 to add, 2 to change, 0 to remove.\n"
    )
    assert not Suite.objects.get().viewers.exists()
    gather = Series.objects.get(name="gather-main")
    assert (gather.enabled, gather.parameters) == (False, {"file_bytes": 1000, "parallel": 4})
    assert gather.bindings.get(role="destination").resource.name == "login-anl"


def test_what_is_not_in_the_file_is_kept_and_said(grid: Grid, file: Path) -> None:
    grid("apply", file)
    Site.objects.create(name="ncsa")
    assert grid("apply", file) == (
        0,
        "- site ncsa: not in the file; kept (removed only with --prune)\n"
        "Nothing to do: the depot is as the file says. 1 not in the file is kept.\n",
    )
    assert Site.objects.filter(name="ncsa").exists()


def test_a_rescheduled_series_is_expanded_anew_and_others_are_not(grid: Grid, file: Path) -> None:
    grid("apply", file)
    edit(
        file,
        'bindings: {target: ["login-{site}"]}',
        'bindings: {target: ["login-{site}"]}\n    schedule: 5 * * * *',
    )
    grid("apply", file)
    Series.objects.update(created_at=NOON)
    expand(NOON)
    slots = Run.objects.filter(series__name="login-anl").order_by("slot").values_list("slot", flat=True)
    gather = list(Run.objects.filter(series__name="gather-main").values_list("pk", flat=True))
    assert {slot.minute for slot in slots} == {5}
    edit(file, "schedule: 5 * * * *", "schedule: 7 * * * *")
    grid("apply", file)
    expand(NOON)
    assert {slot.minute for slot in slots.all()} == {7}
    assert list(Run.objects.filter(series__name="gather-main").values_list("pk", flat=True)) == gather


def only_gather(file: Path) -> None:
    """Leave one series in the file, and nothing that only others need."""
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("  login-{site}:")], encoding="utf-8")


def test_pruning_removes_what_is_not_in_the_file(grid: Grid, file: Path) -> None:
    grid("apply", file)
    Resource.objects.create(site=Site.objects.create(name="ncsa"), name="login-ncsa", scratch="/scratch")
    Suite.objects.create(name="old")
    only_gather(file)
    _, said = grid("apply", "--prune", file)
    assert said.splitlines()[-4:] == [
        "- suite old",
        "- resource login-ncsa",
        "- site ncsa",
        "0 to add, 0 to change, 15 to remove.",
    ]
    assert Series.objects.get().name == "gather-main"
    assert grid("apply", "--prune", file) == (0, NOTHING_TO_DO)


def test_pruning_switches_a_series_with_runs_off_and_keeps_what_it_needs(grid: Grid, file: Path) -> None:
    grid("apply", file)
    run = run_now(Series.objects.get(name="login-sdsc"), who="ada", now=NOON)
    transitions.move(Run.objects.all(), [run.pk], State.PASSED, cause="test")
    file.write_text("version: 1\n", encoding="utf-8")
    _, said = grid("apply", "--prune", file)
    assert said.splitlines()[:2] == ["~ series login-sdsc", "    enabled: true -> false"]
    assert said.splitlines()[-5:] == [
        "- site sdsc: not in the file; kept, because a resource or an account of runs is there",
        "- resource login-sdsc: not in the file; kept, because a series that is kept is bound to it",
        "- suite main: not in the file; kept, because a series that is kept is in it",
        "- series login-sdsc: not in the file; kept but switched off: it, or what follows it, has runs",
        "0 to add, 1 to change, 14 to remove. 4 not in the file are kept.",
    ]
    assert Run.objects.get().state == State.PASSED
    assert not Series.objects.get().enabled
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0


def test_planned_work_goes_with_its_site_and_never_is_everywhere_instead(grid: Grid, file: Path) -> None:
    grid("apply", file)
    work = MaintenanceWindow.objects.create(name="cables", starts_at=NOON, ends_at=NOON + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="sdsc"))
    assert "- maintenance cables: not in the file; kept" in grid("apply", file)[1]
    file.write_text("version: 1\n", encoding="utf-8")
    _, said = grid("apply", "--prune", file)
    assert said.index("- maintenance cables") < said.index("- site sdsc")
    assert not MaintenanceWindow.objects.exists()
    assert not Site.objects.exists()


def test_maintenance_becomes_planned_work(grid: Grid, file: Path) -> None:
    grid("apply", file)
    disks, weekly = MaintenanceWindow.objects.get(name="disks"), MaintenanceWindow.objects.get(name="weekly")
    assert (disks.title, [site.name for site in disks.sites.all()]) == ("New disks", ["anl", "sdsc"])
    assert (disks.starts_at, disks.ends_at) == (
        datetime(2026, 3, 1, 8, tzinfo=UTC),
        datetime(2026, 3, 2, 8, tzinfo=UTC),
    )
    assert (weekly.schedule, weekly.timezone) == ("0 8 * * tue", "America/Los_Angeles")
    assert (weekly.duration_seconds, weekly.starts_at) == (14400, None)
    assert not MaintenanceWindow.objects.get(name="power").sites.exists()


def test_a_change_of_maintenance_is_shown_and_done(grid: Grid, file: Path) -> None:
    grid("apply", file)
    edit(file, "    sites: [sdsc, anl]\n    starts_at: 2026-03-01T08", "    starts_at: 2026-03-01T09")
    edit(file, "duration_seconds: 14400", "duration_seconds: 7200")
    assert grid("apply", file)[1] == (
        "~ maintenance disks\n"
        '    sites: ["anl", "sdsc"] -> []\n'
        '    starts_at: "2026-03-01T08:00:00Z" -> "2026-03-01T09:00:00Z"\n'
        "~ maintenance weekly\n"
        "    duration_seconds: 14400 -> 7200\n"
        "0 to add, 2 to change, 0 to remove.\n"
    )
    assert not MaintenanceWindow.objects.get(name="disks").sites.exists()
    assert MaintenanceWindow.objects.get(name="weekly").duration_seconds == 7200
    assert grid("plan", file) == (0, NOTHING_TO_DO)


def test_one_window_may_become_many_and_many_one(grid: Grid, file: Path) -> None:
    grid("apply", file)
    once, again = (
        MaintenanceWindow.objects.get(name="disks").pk,
        MaintenanceWindow.objects.get(name="weekly").pk,
    )
    window = "    starts_at: 2026-03-01T08:00:00Z\n    ends_at: 2026-03-02T08:00:00Z\n"
    schedule = "    schedule: 0 8 * * tue\n    timezone: America/Los_Angeles\n    duration_seconds: 14400\n"
    for old, new in ((schedule, "HERE\n"), (window, schedule), ("HERE\n", window)):
        edit(file, old, new)
    grid("apply", file)
    assert MaintenanceWindow.objects.get(pk=once).schedule == "0 8 * * tue"
    assert MaintenanceWindow.objects.get(pk=again).duration_seconds is None


def test_alert_rules_become_those_of_the_depot(grid: Grid, file: Path) -> None:
    grid("apply", file)
    three, silence = AlertRule.objects.get(name="three-in-a-row"), AlertRule.objects.get(name="silence")
    assert (three.title, three.threshold, three.everything) == ("Three in a row", 3, False)
    assert [one.name for one in three.suites.all()] == ["main"]
    assert [one.name for one in three.series.all()] == ["login-anl", "ping-login-anl-login-sdsc"]
    assert three.notify == [{"kind": "log"}, {"kind": "email", "to": ["ada@example.org"]}]
    assert (silence.everything, silence.threshold, silence.enabled) == (True, 7200, True)
    at_sdsc = AlertRule.objects.get(name="at-sdsc")
    assert ([one.name for one in at_sdsc.sites.all()], at_sdsc.enabled) == (["sdsc"], False)


def test_a_change_of_an_alert_rule_is_shown_and_done(grid: Grid, file: Path) -> None:
    grid("apply", file)
    edit(file, "watches: {everything: true}", "watches: {sites: [anl]}")
    edit(file, "watches: {sites: [sdsc]}", "watches: {everything: true}")
    edit(file, "failures_in_row: 3", "silent_seconds: 60")
    assert grid("apply", file)[1] == (
        "~ alert rule at-sdsc\n"
        "    watches.everything: nothing -> true\n"
        '    watches.sites: ["sdsc"] -> nothing\n'
        "~ alert rule silence\n"
        "    watches.everything: true -> nothing\n"
        '    watches.sites: nothing -> ["anl"]\n'
        "~ alert rule three-in-a-row\n"
        "    failures_in_row: 3 -> null\n"
        "    silent_seconds: null -> 60\n"
        "0 to add, 3 to change, 0 to remove.\n"
    )
    assert grid("plan", file) == (0, NOTHING_TO_DO)


def test_pruning_switches_a_rule_that_opened_alerts_off_and_removes_others(grid: Grid, file: Path) -> None:
    grid("apply", file)
    rule = AlertRule.objects.get(name="three-in-a-row")
    rule.sites.add(Site.objects.create(name="ncsa"))
    gather = Series.objects.get(name="gather-main")
    Alert.objects.create(rule=rule, series=gather, since=NOON, opened_at=NOON, text="it is down")
    only_gather(file)
    _, said = grid("apply", "--prune", file)
    assert "- alert rule three-in-a-row: not in the file; kept but switched off: it has opened alerts" in said
    kept = AlertRule.objects.get()
    assert (kept.name, kept.enabled, Alert.objects.get().rule) == ("three-in-a-row", False, kept)
    assert [one.name for one in kept.suites.all()] == ["main"]
    assert not kept.sites.exists()  # and it does not watch everything instead
    assert not kept.everything
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0


def test_slots_to_come_are_no_history_and_what_somebody_asked_for_is(grid: Grid, file: Path) -> None:
    grid("apply", file)
    run_now(Series.objects.get(name="login-sdsc"), who="ada")
    expand(datetime.now(UTC))
    file.write_text("version: 1\n", encoding="utf-8")
    grid("apply", "--prune", file)
    assert Series.objects.get().name == "login-sdsc"


def test_a_name_that_a_file_gave_up_may_be_taken_by_another_series(grid: Grid, file: Path) -> None:
    grid("apply", file)
    edit(file, "  gather-main:", "  gather-other:")
    grid("apply", "--prune", file)
    edit(file, "  gather-other:", "  gather-main:")
    assert grid("apply", "--prune", file)[1].endswith("1 to add, 0 to change, 1 to remove.\n")


def test_hundreds_of_series_take_a_few_statements(
    grid: Grid, file: Path, django_assert_max_num_queries: object
) -> None:
    edit(file, "{size: [4096, 8192]}", f"{{size: [{', '.join(map(str, range(4096, 4396)))}]}}")
    with django_assert_max_num_queries(60):  # type: ignore[operator]
        apply(str(file), prune=False)
    assert Series.objects.count() == 305


@contextmanager
def somebody_applies(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that applies *file* to the depot of this test."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    url = urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
    process = subprocess.Popen(
        [sys.executable, "manage.py", "grid", "apply", str(file)],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def waits_for_us() -> bool:
    """Whether somebody waits for a lock that this transaction has."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_process_that_is_killed_in_the_middle_leaves_nothing_half_applied(file: Path) -> None:
    suite = Suite.objects.create(name="main")
    before = depot.read()
    with transaction.atomic():
        Suite.objects.select_for_update().get(pk=suite.pk)  # sites and resources are written before it
        with somebody_applies(file):
            assert eventually(waits_for_us, within_seconds=60.0)
    assert depot.read() == before


@pytest.mark.django_db(transaction=True)
def test_two_who_apply_at_the_same_time_wait_for_each_other(file: Path) -> None:
    with ExitStack() as stack:
        with changing():
            process = stack.enter_context(somebody_applies(file))
            assert eventually(waits_for_us, within_seconds=60.0)
            Site.objects.create(name="anl", title="Argonne")
        output, _ = process.communicate(timeout=60.0)
    assert "17 to add, 0 to change" in output  # it saw what was done before its turn
    assert Series.objects.count() == 7
