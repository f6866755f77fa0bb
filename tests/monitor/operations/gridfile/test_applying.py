"""Plan, apply and prune: what is shown is what is done, all of it or nothing, and no history is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from monitor.analysis.signatures import own as own_signatures
from monitor.models import (
    Alert,
    AlertRule,
    FailureSignature,
    MaintenanceWindow,
    OwnSignature,
    Reporter,
    Resource,
    Run,
    RunSubscriber,
    Series,
    SignatureChange,
    Site,
    Suite,
    Webhook,
)
from monitor.models.failure_signature import Origin
from monitor.models.run import State
from monitor.models.run_feed import WEBHOOKS
from monitor.operations.gridfile import depot
from monitor.operations.gridfile.applying import apply, locked_transaction
from monitor.operations.gridfile.definition import GridDefinition
from monitor.runs.ledger import transitions
from monitor.runs.ledger.expand import expand
from monitor.runs.ledger.run_now import run_now
from tests.monitor.operations.gridfile.conftest import GridCommand
from tests.waiting import eventually

EMPTY = GridDefinition()
ROOT = Path(__file__).resolve().parents[4]
NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NO_CHANGES = "No changes: the depot matches the file.\n"


@pytest.fixture
def file(whole: str, operators: Group, tmp_path: Path) -> Path:
    """Write the complete file where a test can edit it."""
    (tmp_path / "grid.yaml").write_text(whole, encoding="utf-8")
    return tmp_path / "grid.yaml"


def edit(file: Path, old: str, new: str) -> Path:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return file


def test_apply_writes_a_file_to_the_depot(grid: GridCommand, file: Path) -> None:
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


def test_apply_writes_the_series_of_macros(grid: GridCommand, file: Path) -> None:
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


def test_a_plan_shows_what_would_be_added_and_changes_nothing(grid: GridCommand, file: Path) -> None:
    status, output = grid("plan", file)
    assert status == 0
    assert '+ site anl\n    title: "Argonne"\n+ site sdsc\n+ resource login-anl\n    site: "anl"\n' in output
    assert '    bindings.sources: ["login-anl"]\n' in output
    assert output.endswith("\n27 to add, 0 to change, 0 to remove.\n")
    assert depot.read() == EMPTY


def test_applying_a_file_again_changes_nothing(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    assert grid("plan", file) == (0, NO_CHANGES)
    assert grid("apply", file) == (0, NO_CHANGES)


def test_apply_prints_the_same_as_plan(grid: GridCommand, file: Path) -> None:
    planned = grid("plan", file)
    assert grid("apply", file) == planned


def test_the_exit_code_of_plan_tells_whether_there_are_changes(grid: GridCommand, file: Path) -> None:
    assert grid("plan", "--exit-code", file)[0] == 2
    grid("apply", file)
    assert grid("plan", "--exit-code", file)[0] == 0


def test_a_change_is_shown_with_old_and_new_values(grid: GridCommand, file: Path) -> None:
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
        "    parameters.parallel: unset -> 4\n"
        "    parameters.result_bytes: 5000 -> unset\n"
        "    enabled: true -> false\n"
        "0 to add, 2 to change, 0 to remove.\n"
    )
    assert not Suite.objects.get().viewers.exists()
    gather = Series.objects.get(name="gather-main")
    assert (gather.enabled, gather.parameters) == (False, {"file_bytes": 1000, "parallel": 4})
    assert gather.bindings.get(role="destination").resource.name == "login-anl"


def test_definitions_that_are_not_in_the_file_are_kept_and_listed(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    Site.objects.create(name="ncsa")
    assert grid("apply", file) == (
        0,
        "- site ncsa: not in the file; kept (removed only with --prune)\n"
        "No changes: the depot matches the file. 1 not in the file is kept.\n",
    )
    assert Site.objects.filter(name="ncsa").exists()


def test_only_a_rescheduled_series_is_expanded_again(grid: GridCommand, file: Path) -> None:
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
    """Reduce the file to one series and the definitions that it needs."""
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: text.index("  login-{site}:")], encoding="utf-8")


def test_prune_removes_definitions_that_are_not_in_the_file(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    Resource.objects.create(site=Site.objects.create(name="ncsa"), name="login-ncsa", scratch="/scratch")
    Suite.objects.create(name="old")
    only_gather(file)
    _, output = grid("apply", "--prune", file)
    assert output.splitlines()[-6:] == [
        "- suite old",
        "- reporter sdsc",
        "- reporter worker",
        "- resource login-ncsa",
        "- site ncsa",
        "0 to add, 0 to change, 24 to remove.",
    ]
    assert Series.objects.get().name == "gather-main"
    assert grid("apply", "--prune", file) == (0, NO_CHANGES)


def test_prune_disables_a_series_with_runs_and_keeps_its_references(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    run = run_now(Series.objects.get(name="login-sdsc"), who="ada", now=NOON)
    transitions.move(Run.objects.all(), [run.pk], State.PASSED, cause="test")
    file.write_text("version: 1\n", encoding="utf-8")
    _, output = grid("apply", "--prune", file)
    assert output.splitlines()[:2] == ["~ series login-sdsc", "    enabled: true -> false"]
    assert output.splitlines()[-5:] == [
        "- site sdsc: not in the file; kept: a kept resource or reporter is there, or it has usage",
        "- resource login-sdsc: not in the file; kept, because a kept series is bound to it",
        "- suite main: not in the file; kept, because a kept series belongs to it",
        "- series login-sdsc: not in the file; kept but disabled: it, or a series that follows it, has runs",
        "0 to add, 1 to change, 23 to remove. 4 not in the file are kept.",
    ]
    assert Run.objects.get().state == State.PASSED
    assert not Series.objects.get().enabled
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0


def test_a_window_is_removed_with_its_site_and_never_applies_to_all_sites(
    grid: GridCommand, file: Path
) -> None:
    grid("apply", file)
    work = MaintenanceWindow.objects.create(name="cables", starts_at=NOON, ends_at=NOON + timedelta(hours=1))
    work.sites.add(Site.objects.get(name="sdsc"))
    assert "- maintenance cables: not in the file; kept" in grid("apply", file)[1]
    file.write_text("version: 1\n", encoding="utf-8")
    _, output = grid("apply", "--prune", file)
    assert output.index("- maintenance cables") < output.index("- site sdsc")
    assert not MaintenanceWindow.objects.exists()
    assert not Site.objects.exists()


def test_apply_writes_maintenance_windows(grid: GridCommand, file: Path) -> None:
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


def test_apply_writes_reporters(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    rows = Reporter.objects.exclude(name="home").values_list("name", "site__name", "capacity")
    assert list(rows) == [("sdsc", "sdsc", 2), ("worker", None, 4)]
    edit(file, "{site: sdsc, capacity: 2}", "{site: anl}")
    assert grid("apply", file)[1] == (
        '~ reporter sdsc\n    site: "sdsc" -> "anl"\n    capacity: 2 -> 4\n'
        "0 to add, 1 to change, 0 to remove.\n"
    )
    edit(file, "    reporter: home\n", "    reporter: sdsc\n")
    assert grid("apply", file)[1] == (
        '~ series gather-main\n    reporter: "home" -> "sdsc"\n0 to add, 1 to change, 0 to remove.\n'
    )


def test_prune_keeps_a_reporter_that_has_enrolled_and_its_site(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    Reporter.objects.get(name="sdsc").keys.create(method="ssh", fingerprint="0" * 64, enrolled_at=NOON)
    file.write_text("version: 1\n", encoding="utf-8")
    _, output = grid("apply", "--prune", file)
    assert output.splitlines()[-3:] == [
        "- site sdsc: not in the file; kept: a kept resource or reporter is there, or it has usage",
        "- reporter sdsc: not in the file; kept, because it has enrolled, or a kept series belongs to it",
        "0 to add, 0 to change, 25 to remove. 2 not in the file are kept.",
    ]
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0


@pytest.mark.parametrize(
    ("source", "origin"),
    [("declared", "was declared after the fact"), ("sdsc-ics", "the feed sdsc-ics announced")],
)
@pytest.mark.parametrize("verb", ["plan", "apply"])
def test_a_window_of_the_name_of_a_declared_or_announced_one_is_refused_with_its_line(
    grid: GridCommand, file: Path, source: str, origin: str, verb: str
) -> None:
    text = "maintenance:\n  new-disks: {starts_at: 2026-03-01T08:00:00Z, ends_at: 2026-03-02T08:00:00Z}\n"
    file.write_text(f"version: 1\n{text}", encoding="utf-8")
    MaintenanceWindow.objects.create(
        name="new-disks", source=source, uid="1", starts_at=NOON, ends_at=NOON + timedelta(hours=1)
    )
    status, output = grid(verb, file)
    assert status != 0
    assert f"{file}:3:" in output
    assert (
        f"maintenance new-disks: its name is that of a window that {origin}; choose another name, or delete"
        in " ".join(output.split())
    )
    assert MaintenanceWindow.objects.get().source == source


def test_a_change_of_maintenance_is_shown_and_applied(grid: GridCommand, file: Path) -> None:
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
    assert grid("plan", file) == (0, NO_CHANGES)


def test_a_single_window_may_become_scheduled_and_back(grid: GridCommand, file: Path) -> None:
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


def test_apply_writes_alert_rules(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    three, silence = AlertRule.objects.get(name="three-in-a-row"), AlertRule.objects.get(name="silence")
    assert (three.title, three.threshold, three.everything) == ("Three in a row", 3, False)
    assert [suite.name for suite in three.suites.all()] == ["main"]
    assert [series.name for series in three.series.all()] == ["login-anl", "ping-login-anl-login-sdsc"]
    assert three.notify == [{"kind": "log"}, {"kind": "email", "to": ["ada@example.org"]}]
    assert (silence.everything, silence.threshold, silence.enabled) == (True, 7200, True)
    at_sdsc = AlertRule.objects.get(name="at-sdsc")
    assert ([site.name for site in at_sdsc.sites.all()], at_sdsc.enabled) == (["sdsc"], False)
    lags = AlertRule.objects.get(name="home-lags")
    assert ([reporter.name for reporter in lags.reporters.all()], lags.threshold) == (["home"], 600)


def test_a_file_neither_lists_nor_removes_default_rules(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    AlertRule.objects.create(
        name="default-lag-seconds", condition="lag_seconds", threshold=600, is_default=True
    )
    assert grid("plan", "--prune", file) == (0, NO_CHANGES)
    assert "default-lag-seconds" not in grid("export", "-")[1]


def test_a_change_of_an_alert_rule_is_shown_and_applied(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    edit(file, "watches: {everything: true}", "watches: {sites: [anl]}")
    edit(file, "watches: {sites: [sdsc]}", "watches: {everything: true}")
    edit(file, "failures_in_row: 3", "silent_seconds: 60")
    assert grid("apply", file)[1] == (
        "~ alert rule at-sdsc\n"
        "    watches.everything: unset -> true\n"
        '    watches.sites: ["sdsc"] -> unset\n'
        "~ alert rule silence\n"
        "    watches.everything: true -> unset\n"
        '    watches.sites: unset -> ["anl"]\n'
        "~ alert rule three-in-a-row\n"
        "    failures_in_row: 3 -> null\n"
        "    silent_seconds: null -> 60\n"
        "0 to add, 3 to change, 0 to remove.\n"
    )
    assert grid("plan", file) == (0, NO_CHANGES)


def test_prune_disables_a_rule_that_opened_alerts_and_removes_others(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    rule = AlertRule.objects.get(name="three-in-a-row")
    rule.sites.add(Site.objects.create(name="ncsa"))
    gather = Series.objects.get(name="gather-main")
    Alert.objects.create(rule=rule, series=gather, since=NOON, opened_at=NOON, text="it is down")
    only_gather(file)
    _, output = grid("apply", "--prune", file)
    assert "- alert rule three-in-a-row: not in the file; kept but disabled: it has opened alerts" in output
    kept = AlertRule.objects.get()
    assert (kept.name, kept.enabled, Alert.objects.get().rule) == ("three-in-a-row", False, kept)
    assert [suite.name for suite in kept.suites.all()] == ["main"]
    assert not kept.sites.exists()  # the rule must not watch everything instead
    assert not kept.everything
    assert grid("plan", "--prune", "--exit-code", file)[0] == 0


def test_apply_writes_webhooks_and_an_export_reads_them(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    ops = Webhook.objects.get(name="ops")
    assert (ops.events, ops.secret_variable, ops.created_by) == (
        ["site.down", "site.up"],
        "GRIDCAST_WEBHOOK_OPS",
        "a grid file",
    )
    assert [suite.name for suite in ops.suites.all()] == ["main"]
    assert {site.name for site in ops.sites.all()} == {"anl", "sdsc"}
    edit(file, "events: [run.ended], enabled: false", "events: [run.ended]")
    edit(file, "    suites: [main]\n    sites: [sdsc, anl]\n", "    sites: [sdsc]\n")
    assert "2 to change" in grid("apply", file)[1]
    assert not ops.suites.exists()
    assert ops.sites.get().name == "sdsc"
    assert RunSubscriber.objects.filter(name=WEBHOOKS).exists()
    exported = grid("export", "-")[1]
    assert "secret_variable: GRIDCAST_WEBHOOK_OPS" in exported


def test_a_rule_keeps_probes_severity_and_repetition(grid: GridCommand, file: Path) -> None:
    more = "probes: [gather]}\n    severity: critical\n    repeat_seconds: 3600"
    edit(file, "watches: {sites: [sdsc]}", f"watches: {{sites: [sdsc], {more}")
    grid("apply", file)
    rule = AlertRule.objects.get(name="at-sdsc")
    assert (rule.probes, rule.severity, rule.repeat_seconds) == (["gather"], "critical", 3600)
    assert grid("plan", "--exit-code", file)[0] == 0
    edit(file, "sites: [sdsc], probes: [gather]", "sites: [sdsc]")
    assert 'watches.probes: ["gather"] -> unset' in grid("apply", file)[1]
    assert AlertRule.objects.get(name="at-sdsc").probes == []


def test_apply_writes_signatures_with_their_record(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    row = OwnSignature.objects.get(name="tape-jammed")
    assert row.patterns == [r"tape \d+ jammed", "robot arm stuck"]
    assert (row.stages, row.counts_against_site, row.precedence) == (["transfer_ring"], False, 3)
    assert (row.origin, row.changed_by) == (Origin.GRID_FILE, "")
    assert FailureSignature.objects.get(name="tape-jammed").origin == Origin.GRID_FILE
    changes = SignatureChange.objects.order_by("signature").values_list("signature", "action", "user")
    assert list(changes) == [("gate-stuck", "added", ""), ("tape-jammed", "added", "")]


def test_a_file_replaces_what_a_page_made_of_a_signature_and_keeps_other_ones(
    grid: GridCommand, file: Path
) -> None:
    grid("apply", file)
    values = {"title": "Stuck", "category": "storage", "severity": "minor", "patterns": ["gate stuck now"]}
    own_signatures.edit("gate-stuck", values, 1, "chief", NOON)
    own_signatures.accept("of-a-page", {**values, "patterns": ["robot lost"]}, "chief", NOON)
    _, shown = grid("plan", file)
    assert "~ signature gate-stuck" in shown
    assert 'patterns: ["gate stuck now"] -> ["^gate stuck$"]' in shown
    assert "- signature of-a-page: not in the file; kept" in shown
    grid("apply", file)
    row = OwnSignature.objects.get(name="gate-stuck")
    assert (row.title, row.origin, row.changed_by, row.version) == ("Gate stuck", "grid file", "", 3)
    with pytest.raises(own_signatures.OutdatedSignature, match="by a grid file"):
        own_signatures.edit("gate-stuck", values, 2, "chief", NOON)
    grid("apply", "--prune", file)
    assert not OwnSignature.objects.filter(name="of-a-page").exists()
    assert FailureSignature.objects.get(name="of-a-page").origin == Origin.WITHDRAWN
    last = SignatureChange.objects.first()
    assert last is not None
    assert (last.signature, last.action, last.user) == ("of-a-page", "withdrawn", "")


def test_a_requested_run_protects_a_series_from_prune(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    run_now(Series.objects.get(name="login-sdsc"), who="ada")
    expand(datetime.now(UTC))
    file.write_text("version: 1\n", encoding="utf-8")
    grid("apply", "--prune", file)
    assert Series.objects.get().name == "login-sdsc"


def test_the_name_of_a_removed_series_can_be_reused(grid: GridCommand, file: Path) -> None:
    grid("apply", file)
    edit(file, "  gather-main:", "  gather-other:")
    grid("apply", "--prune", file)
    edit(file, "  gather-other:", "  gather-main:")
    assert grid("apply", "--prune", file)[1].endswith("1 to add, 0 to change, 1 to remove.\n")


def test_hundreds_of_series_take_a_few_statements(
    grid: GridCommand, file: Path, django_assert_max_num_queries: object
) -> None:
    edit(file, "{size: [4096, 8192]}", f"{{size: [{', '.join(map(str, range(4096, 4396)))}]}}")
    with django_assert_max_num_queries(84):  # type: ignore[operator]
        apply(str(file), prune=False)
    assert Series.objects.count() == 305


@contextmanager
def applying_process(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Apply *file* to the depot of this test in another process."""
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


def is_lock_awaited() -> bool:
    """Tell whether another session waits for a lock of this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks"
            " WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_killed_apply_leaves_nothing_half_applied(file: Path) -> None:
    suite = Suite.objects.create(name="main")
    before = depot.read()
    with transaction.atomic():
        Suite.objects.select_for_update().get(pk=suite.pk)  # sites and resources are written before suites
        with applying_process(file):
            assert eventually(is_lock_awaited, within_seconds=60.0)
    assert depot.read() == before


def applied_in_a_thread(grid: GridCommand, file: Path) -> str:
    """Apply *file* over a connection of this thread's own; return the output."""
    try:
        return grid("apply", file)[1]
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_concurrent_applies_wait_for_each_other(grid: GridCommand, file: Path) -> None:
    with ThreadPoolExecutor() as pool:
        with locked_transaction():
            applied = pool.submit(applied_in_a_thread, grid, file)
            assert eventually(is_lock_awaited, within_seconds=60.0)
            Site.objects.create(name="anl", title="Argonne")
        output = applied.result(timeout=60.0)
    assert "26 to add, 0 to change" in output  # it sees the changes of the first transaction
    assert Series.objects.count() == 7
