"""The public status page and its badges: what is public, and nothing else."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.test import Client

from monitor.analysis.availability.site_states import CurrentState, OperationalState, StateReason
from monitor.analysis.incidents.open_and_resolve import update_incidents
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.depot.rollups.worker import roll
from monitor.models import FailureSignature, Site, SiteDay, Suite
from monitor.web.accounts.throttle import FailureLimit
from monitor.web.charts.badge import badge
from monitor.web.pages import public
from monitor.web.status.public_status import PublicState, public_status, site_state, suite_state
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid
from tests.monitor.web.pages.http.test_parts import SENTENCE, planted

REFUSED = "cannot connect to site2.example.org:22: Connection refused"


@pytest.fixture(autouse=True)
def own_cache(settings: Any) -> None:
    """A cache that tests in other processes do not share."""
    backend = "django.core.cache.backends.locmem.LocMemCache"
    name = uuid.uuid4().hex
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": name, "KEY_PREFIX": f"test-{name}"}}


@pytest.fixture
def visitor() -> Client:
    return Client()


@pytest.fixture
def failures(grid: Grid, now: datetime, minute: timedelta) -> None:
    """Gather of the suite ``main`` has failed at site2 three times."""
    for number in (3, 2, 1):
        sent = builders.report(grid.gather, now - number * minute)
        builders.delivered(builders.failed(sent, "transfer_data", "site2-login", REFUSED))
    classify_runs(now)
    update_incidents(now)
    roll(now)


def test_by_default_nothing_is_public(failures: None, visitor: Client) -> None:
    text = visitor.get("/public/").content.decode()
    assert "Nothing is public" in text
    for secret in ("site2", "gather", "Connection refused"):
        assert secret not in text
    assert visitor.get("/public/badges/sites/site2.svg").status_code == 404
    assert visitor.get("/public/badges/suites/main.svg").status_code == 404


def test_a_public_site_shows_its_state_and_the_causes_of_its_incidents_without_internal_names(
    failures: None, visitor: Client
) -> None:
    Site.objects.filter(name="site2").update(is_public=True, title="Second <site>")
    answer = visitor.get("/public/")
    text = answer.content.decode()
    assert "Second &lt;site&gt;" in text
    assert ">down</span>" in text
    assert "Connection refused, since" in text
    for secret in ("site1", "site3", "gather", "login", "example.org", "transfer_data"):
        assert secret not in text
    assert answer["Cache-Control"] == "public, max-age=60"
    assert "Cookie" not in answer.get("Vary", "")
    assert not answer.cookies


def test_availability_is_that_of_the_time_that_is_known(
    failures: None, visitor: Client, now: datetime, minute: timedelta
) -> None:
    site = Site.objects.get(name="site2")
    Site.objects.filter(pk=site.pk).update(is_public=True)
    SiteDay.objects.filter(site=site).delete()
    today = now.astimezone(UTC).date()
    SiteDay.objects.create(site=site, day=today, up_seconds=2700, down_seconds=900, computed_at=now)
    assert "Up 75.0 % of the 1 h known in the last 90 days" in visitor.get("/public/").content.decode()
    for ago in range(1, 90):
        day = today - timedelta(days=ago)
        SiteDay.objects.create(site=site, day=day, up_seconds=86400, computed_at=now)
    (status,) = public_status(now).sites or ()  # the page itself is cached for a minute
    assert status.is_known_throughout


def test_titles_of_signatures_that_users_wrote_are_not_public(failures: None, now: datetime) -> None:
    Site.objects.filter(name="site2").update(is_public=True)
    FailureSignature.objects.update(origin="page", title="disk of secret-host")
    (site,) = public_status(now).sites or ()
    assert [incident.cause for incident in site.incidents or ()] == ["Failures"]


def test_failures_of_a_suite_with_viewers_are_not_public(failures: None, grid: Grid, now: datetime) -> None:
    Site.objects.filter(name="site2").update(is_public=True)
    Suite.objects.get(name="main").viewers.add(Group.objects.create(name="physicists"))
    (site,) = public_status(now).sites or ()
    assert (site.state, site.incidents) == (PublicState.UNKNOWN, ())


def test_a_public_suite_has_a_state_of_its_own(failures: None, grid: Grid, now: datetime) -> None:
    Suite.objects.filter(name="main").update(is_public=True)
    assert [suite.state for suite in public_status(now).suites or ()] == [PublicState.DOWN]
    builders.passed(grid.circle, now)
    assert [suite.state for suite in public_status(now).suites or ()] == [PublicState.DEGRADED]
    assert not public_status(now).sites


def test_badges_are_pictures_that_every_cache_may_keep(failures: None, visitor: Client) -> None:
    Site.objects.filter(name="site2").update(is_public=True)
    answer = visitor.get("/public/badges/sites/site2.svg")
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("image/svg+xml", "public, max-age=60")
    assert b"site2: down" in answer.content
    assert visitor.get("/public/badges/suites/site2.svg").status_code == 404


def test_one_request_renews_the_answers_and_others_get_the_former_ones_meanwhile(
    failures: None, visitor: Client
) -> None:
    Site.objects.filter(name="site2").update(is_public=True)
    assert "<h3>site2</h3>" in visitor.get("/public/").content.decode()
    Site.objects.filter(name="site3").update(is_public=True)
    assert "<h3>site3</h3>" not in visitor.get("/public/").content.decode()
    cache.set(public.CACHED, {**cache.get(public.CACHED), "until": 0.0})
    cache.set(public.RENEWING, 1)  # by another request
    assert "<h3>site3</h3>" not in visitor.get("/public/").content.decode()
    cache.delete(public.RENEWING)
    assert "<h3>site3</h3>" in visitor.get("/public/").content.decode()
    assert cache.get(public.RENEWING) is None


def test_a_network_that_asks_too_often_is_refused(
    db: None, visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "REQUESTS", FailureLimit("public request", 2))
    answers = [visitor.get("/public/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1]["Retry-After"]) > 0


@pytest.mark.parametrize("part", ["states", "availability", "incidents", "suites", "site:site2"])
def test_what_fails_takes_away_nothing_else_and_is_kept_for_seconds(
    failures: None, visitor: Client, now: datetime, part: str
) -> None:
    Site.objects.filter(name__in=["site2", "site3"]).update(is_public=True)
    Suite.objects.filter(name="main").update(is_public=True)
    site, today = Site.objects.get(name="site2"), now.astimezone(UTC).date()
    SiteDay.objects.update_or_create(
        site=site,
        service="",
        day=today,
        defaults={"up_seconds": 2700, "down_seconds": 900, "computed_at": now},
    )
    with planted("public", part):
        answer = visitor.get("/public/")
        badges = [visitor.get(f"/public/badges/sites/{name}.svg") for name in ("site2", "site3")]
    text = answer.content.decode()
    assert (answer.status_code, SENTENCE in text) == (200, True)
    assert "<h3>site2</h3>" in text
    assert "<h3>site3</h3>" in text
    assert ("Up 75.0 %" in text) == (part not in {"availability", "site:site2"})
    assert ("Connection refused, since" in text) == (part not in {"incidents", "site:site2"})
    assert ("<h3>main</h3>" in text) == (part != "suites")
    assert answer["Cache-Control"] == "public, max-age=5"
    assert [badge.status_code for badge in badges] == [200, 200]


def test_no_badge_is_missing_because_the_sites_could_not_be_read(failures: None, visitor: Client) -> None:
    Site.objects.filter(name="site2").update(is_public=True)
    with planted("public", "sites"):
        answer, page = visitor.get("/public/badges/sites/site2.svg"), visitor.get("/public/")
    assert (answer.status_code, answer["Cache-Control"]) == (503, "public, max-age=5")
    assert SENTENCE in page.content.decode()
    assert "Nothing is public" not in page.content.decode()


def test_a_site_that_is_up_is_not_called_operational_while_incidents_cannot_be_read() -> None:
    up = CurrentState(OperationalState.UP, None, None, [])
    assert site_state(up, has_incident=None) is None


def test_the_label_of_a_badge_is_escaped() -> None:
    assert "<script>" not in badge('<script>"&', "down")


@pytest.mark.parametrize(
    ("passed", "failed", "state"),
    [(0, 0, "no recent data"), (2, 0, "operational"), (2, 1, "degraded"), (0, 1, "down")],
)
def test_the_state_of_a_suite_follows_from_its_series(passed: int, failed: int, state: str) -> None:
    assert suite_state(passed, failed) == state


def test_a_site_that_is_up_while_a_resource_fails_or_an_incident_is_open_is_degraded(now: datetime) -> None:
    reason = StateReason(OperationalState.DOWN, now, None, "host", "3 failures")
    assert site_state(CurrentState(OperationalState.UP, None, None, [reason])) == PublicState.DEGRADED
    up = CurrentState(OperationalState.UP, None, None, [])
    assert site_state(up) == PublicState.OPERATIONAL
    assert site_state(up, has_incident=True) == PublicState.DEGRADED
