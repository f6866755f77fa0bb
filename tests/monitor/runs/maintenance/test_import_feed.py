"""Windows of feeds: imports replace them, exports write them, and declarations change past figures."""

from __future__ import annotations

import io
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import MaintenanceChange, MaintenanceWindow, Resource, Series, Site, Suite
from monitor.models.maintenance_change import MaintenanceAction
from monitor.operations.gridfile.depot import read
from monitor.operations.gridfile.planning import Plan
from monitor.operations.gridfile.writing import write
from monitor.runs.ingest.service import ingest_all
from monitor.runs.maintenance.changes import DECLARED, MaintenanceError, Reason, declare
from monitor.runs.maintenance.feeds.base import AnnouncedWindow
from monitor.runs.maintenance.feeds.ical import Feed
from monitor.runs.maintenance.import_feed import WindowImport, horizon_at, import_windows, site_names
from monitor.runs.maintenance.write_calendar import MOST_AHEAD, MOST_PAST, calendar_for_user
from reporters import report as wire
from tests.monitor.analysis.availability.computing import seconds_of
from tests.monitor.builders import circle_report, failed_circle_report
from tests.monitor.conftest import NOON
from tests.monitor.runs.maintenance.feeds import builders

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def sdsc() -> Site:
    site = Site.objects.create(name="sdsc")
    shell = {"kind": "ssh", "host": "Login.sdsc.example.org"}
    Resource.objects.create(site=site, name="login", scratch="/tmp", shell=shell)
    return site


def announced(uid: str, *sites: str, starts_at: datetime = NOON + DAY, host: str = "") -> AnnouncedWindow:
    hosts = frozenset({host} - {""})
    return AnnouncedWindow(uid, uid.title(), starts_at, starts_at + 2 * HOUR, 1, frozenset(sites), hosts)


def imported(*windows: AnnouncedWindow, now: datetime = NOON, is_dry_run: bool = False) -> WindowImport:
    reason = Reason("operator", "import of feed.ics", now)
    return import_windows(windows, "feed", site_names(), reason, is_dry_run=is_dry_run)


def stored() -> dict[str, tuple[datetime | None, datetime | None]]:
    return {window.uid: (window.starts_at, window.ends_at) for window in MaintenanceWindow.objects.all()}


def test_an_import_is_idempotent(sdsc: Site) -> None:
    windows = [announced("disks", "SDSC"), announced("power", "sdsc")]
    assert imported(*windows).counts == {"added": 2}
    assert (imported(*windows).counts, imported(*windows).unchanged) == ({}, 2)
    assert MaintenanceWindow.objects.count() == MaintenanceChange.objects.count() == 2


def test_what_the_feed_announces_no_more_is_removed_ends_or_stays(sdsc: Site) -> None:
    MaintenanceWindow.objects.create(name="own", starts_at=NOON + DAY, ends_at=NOON + 2 * DAY)
    times = {"past": NOON - DAY, "open": NOON - HOUR, "future": NOON + DAY}
    imported(*(announced(uid, "sdsc", starts_at=start) for uid, start in times.items()))
    assert imported().counts == {"removed": 1, "shortened": 1}
    assert stored() == {
        "": (NOON + DAY, NOON + 2 * DAY),
        "past": (NOON - DAY, NOON - DAY + 2 * HOUR),
        "open": (NOON - HOUR, NOON),
    }


def test_a_changed_window_is_recorded_with_its_old_and_new_times(sdsc: Site) -> None:
    imported(announced("disks", "sdsc"))
    assert imported(announced("disks", "sdsc", starts_at=NOON + 2 * DAY)).counts == {"changed": 1}
    change = MaintenanceChange.objects.get(action=MaintenanceAction.CHANGED)
    assert change.before == "Disks: 2026-03-02 12:00 to 2026-03-02 14:00 UTC at sdsc"
    assert change.after == "Disks: 2026-03-03 12:00 to 2026-03-03 14:00 UTC at sdsc"
    assert (change.who, change.why, change.at) == ("operator", "import of feed.ics", NOON)


def test_a_host_decides_which_site_is_under_maintenance(sdsc: Site) -> None:
    known = announced("known", "elsewhere", host="login.sdsc.example.org")
    other = announced("other", "sdsc", host="nagios.sdsc.example.org")
    result = imported(known, other, announced("nowhere", "ncsa"))
    assert [window.uid for window in result.unmatched] == ["other", "nowhere"]
    assert set(stored()) == {"known"}
    assert site_names(is_whole=True).find(other) == [sdsc]
    ncsa = Site.objects.create(name="ncsa")
    assert site_names(only=ncsa).find(known) == [ncsa]


def test_a_dry_run_changes_nothing(sdsc: Site) -> None:
    assert imported(announced("disks", "sdsc"), is_dry_run=True).counts == {"added": 1}
    assert stored() == {}
    assert not MaintenanceChange.objects.exists()


def test_windows_of_feeds_are_no_part_of_the_grid_file_and_leave_with_their_only_site(sdsc: Site) -> None:
    Site.objects.create(name="ncsa")
    imported(announced("disks", "ncsa"), announced("power", "ncsa", "sdsc"))
    grid = read()
    assert grid.maintenance == {}
    write(Plan(grid, replace(grid, sites={"sdsc": grid.sites["sdsc"]})))
    assert set(stored()) == {"power"}


def feed_file(tmp_path: Path, data: bytes, name: str = "feed.ics") -> str:
    file = tmp_path / name
    file.write_bytes(data)
    return str(file)


def future_event(uid: str = "disks", site: str = "sdsc") -> bytes:
    start = f"{timezone.now() + DAY:%Y%m%dT%H%M%SZ}"
    return builders.calendar(
        builders.event(f"DTSTART:{start}", "DURATION:PT2H", f"CATEGORIES:{site}", uid=uid)
    )


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("maintenance", *arguments, stdout=out, stderr=out)
    return out.getvalue()


def test_the_command_imports_a_file_and_names_what_it_skips(sdsc: Site, tmp_path: Path) -> None:
    file = feed_file(tmp_path, future_event())
    assert "nothing is changed" in command("import", file, "--format", "ical", "--dry-run")
    assert command("import", file, "--format", "ical") == "feed: 1 added, 0 unchanged\n"
    assert command("import", file, "--format", "ical") == "feed: 1 unchanged\n"
    window = MaintenanceWindow.objects.get()
    assert (window.source, window.title, [site.name for site in window.sites.all()]) == (
        "feed",
        "New disks",
        ["sdsc"],
    )
    other = feed_file(tmp_path, future_event(site="ncsa"), "other.ics")
    assert "line 4: skipped, at no site of the grid (ncsa): New disks" in command(
        "import", other, "--format", "ical"
    )


@pytest.mark.parametrize(
    ("data", "feed_format", "reason"),
    [
        (
            future_event().replace(b"DURATION:PT2H", b"DURATION:PT2H\r\nRRULE:FREQ=SECONDLY"),
            "ical",
            ":9: RRULE: more often than 4 times a day: 'FREQ=SECONDLY'; nothing is imported",
        ),
        (
            b'<!DOCTYPE a [<!ENTITY b "c">]><results/>',
            "gocdb",
            ":1: a document type or an entity is refused; nothing is imported",
        ),
        (b"", "osg", ": the file is empty; nothing is imported"),
    ],
)
def test_a_refused_file_changes_nothing(
    sdsc: Site, tmp_path: Path, data: bytes, feed_format: str, reason: str
) -> None:
    imported(announced("disks", "sdsc", starts_at=timezone.now() + DAY))
    file = feed_file(tmp_path, data)
    with pytest.raises(CommandError) as refused:
        command("import", file, "--format", feed_format, "--source", "feed")
    assert str(refused.value) == f"{file}{reason}"
    assert set(stored()) == {"disks"}


class _FeedServer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
        else:
            self.send_response(200 if self.path == "/feed" else 404)
        self.end_headers()
        if self.path == "/feed":
            self.wfile.write(future_event())

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_feed_is_fetched_from_its_address(sdsc: Site) -> None:
    with HTTPServer(("127.0.0.1", 0), _FeedServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            assert ": 1 added, 0 unchanged\n" in command("import", f"{address}/feed", "--format", "ical")
            for path, reason in (("/none", "the server answered 404"), ("/moved", "redirects to 'file:")):
                with pytest.raises(CommandError, match=reason):
                    command("import", address + path, "--format", "ical")
        finally:
            server.shutdown()
            thread.join()


def test_an_unreachable_address_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot fetch it"):
        command("import", "http://127.0.0.1:1/feed", "--format", "ical")
    with pytest.raises(CommandError, match="No such file or directory; nothing is imported"):
        command("import", str(tmp_path / "none.ics"), "--format", "ical")


def test_an_exported_calendar_can_be_imported(sdsc: Site, tmp_path: Path) -> None:
    now = timezone.now()
    weekly = MaintenanceWindow.objects.create(name="weekly", schedule="0 13 * * 2", duration_seconds=7200)
    weekly.sites.add(sdsc)
    imported(announced("disks", "sdsc", starts_at=now + DAY))
    file = str(tmp_path / "out.ics")
    command("export", "--output", file)
    assert command("export").startswith("BEGIN:VCALENDAR")
    windows = Feed().parse(Path(file).read_bytes(), horizon_at(now)).windows
    assert {window.sites for window in windows} == {frozenset({"sdsc"})}
    assert sum(window.title == "weekly" for window in windows) in range(69, 72)
    assert [window.starts_at for window in windows if window.title == "Disks"] == [
        (now + DAY).replace(microsecond=0)
    ]
    Site.objects.create(name="ncsa")
    assert "VEVENT" not in command("export", "--site", "ncsa")


def test_a_calendar_is_bounded_and_says_between_which_times_it_is_complete(sdsc: Site) -> None:
    MaintenanceWindow.objects.create(name="hourly", schedule="0 * * * *", duration_seconds=60)
    MaintenanceWindow.objects.create(name="always", schedule="* * * * *", duration_seconds=60)
    data = calendar_for_user(MaintenanceWindow.objects.all(), User(is_superuser=True), NOON)
    text = data.decode().replace("\r\n ", "")
    assert text.count("BEGIN:VEVENT") == MOST_PAST + MOST_AHEAD
    assert text.count("UID:always") == 1  # occurrences that meet are one
    left_out = NOON - (MOST_PAST + 1) * HOUR + MINUTE, NOON + (MOST_AHEAD - 1) * HOUR
    first, last = (f"{time:%Y-%m-%d %H:%M} UTC" for time in left_out)
    assert f"X-WR-CALDESC:Complete from {first} until {last}: " in text


def test_the_calendar_page_has_only_windows_that_the_user_may_see(circle: Series, client: Client) -> None:
    Site.objects.create(name="elsewhere")
    imported(
        *(announced(site, site, starts_at=timezone.now() + DAY) for site in ("site-of-here", "elsewhere"))
    )
    assert client.get("/maintenance.ics").status_code == 302
    user = User.objects.create_user("reader")
    client.force_login(user)
    response = client.get("/maintenance.ics")
    assert response["Content-Type"] == "text/calendar; charset=utf-8"
    assert b"site-of-here" in response.content
    assert b"lsewhere" not in response.content
    Suite.objects.get().viewers.add(Group.objects.create(name="operators"))
    assert b"VEVENT" not in calendar_for_user(MaintenanceWindow.objects.all(), user, timezone.now())


def test_a_window_declared_later_changes_the_availability_of_the_month(circle: Series) -> None:
    midnight = NOON - 12 * HOUR
    reports = [
        circle_report(midnight + hour * HOUR)
        if hour < 2
        else failed_circle_report(midnight + hour * HOUR, message="No space left on device")
        for hour in range(6)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    classify_runs(NOON)
    site, end = Site.objects.get(name="site-of-there"), midnight + 6 * HOUR

    def hours() -> tuple[float, float, float | None]:
        seconds = seconds_of(site.name, midnight.date(), end)
        return seconds.down / 3600, seconds.scheduled / 3600, seconds.reliability

    before = hours()
    declare("disks", [site], midnight + 2 * HOUR, midnight + 6 * HOUR, Reason("ada", "new disks", NOON))
    after = hours()
    assert (before[:2], after[:2]) == ((4, 0), (0, 4))
    assert before[2] == pytest.approx(1 / 3)
    assert after[2] == 1
    change = MaintenanceChange.objects.get()
    assert (change.window, change.source, change.action, change.who, change.why, change.at) == (
        *("disks", DECLARED, MaintenanceAction.DECLARED, "ada", "new disks"),
        NOON,
    )
    assert change.after == "new disks: 2026-03-01 02:00 to 2026-03-01 06:00 UTC at site-of-there"


@pytest.mark.parametrize(
    ("start", "end", "why", "reason"),
    [
        (-2, 1, "disks", "in the future"),
        (-1, -2, "disks", "expected an end after the start"),
        (-2, -1, " ", "expected a reason"),
        (-2, -1, "x" * 501, "at most 500 characters"),
        (-2, -1, "disks", "there is a maintenance window 'taken' already"),
    ],
)
def test_a_declaration_that_is_refused_names_the_reason(
    sdsc: Site, start: int, end: int, why: str, reason: str
) -> None:
    MaintenanceWindow.objects.create(name="taken", starts_at=NOON, ends_at=NOON + HOUR)
    with pytest.raises(MaintenanceError, match=reason):
        declare("taken", [sdsc], NOON + start * HOUR, NOON + end * HOUR, Reason("ada", why, NOON))
    assert not MaintenanceChange.objects.exists()


def test_the_command_declares_a_window_for_a_user(sdsc: Site) -> None:
    times = ("--from", "2026-03-01T08:00Z", "--until", "2026-03-01T10:00Z")
    command("declare", "disks", "--site", "sdsc", *times, "--reason", "new disks", "--by", "ada")
    window = MaintenanceWindow.objects.get(name="disks")
    assert (window.starts_at, window.source) == (datetime(2026, 3, 1, 8, tzinfo=UTC), DECLARED)
    assert MaintenanceChange.objects.get().who == "ada"
    line = "ada: disks declared: new disks: 2026-03-01 08:00 to 2026-03-01 10:00 UTC at sdsc (new disks)\n"
    assert command("log", "--window", "disks").endswith(line)
    assert command("log", "--window", "other") == "there is no change\n"
    with pytest.raises(CommandError, match="there is no site 'ncsa'; there are: sdsc"):
        command("declare", "other", "--site", "ncsa", *times, "--reason", "new disks")
    with pytest.raises(MaintenanceError, match="cannot be the name of a feed"):
        import_windows([], DECLARED, site_names(), Reason("ada", "", NOON))
