"""Verdicts on parts of the grid are stored with their runs, and end when results contradict them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.test import Client

from monitor.analysis.alerts.listing import listed
from monitor.analysis.attribution.attribute import attribute, explained, of_series
from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import Alert, AlertRule, AttributedRun, Attribution, Run, Series, Site
from monitor.models.run import State
from reporters import report as wire
from tests.monitor.analysis.availability.computing import seconds_of
from tests.monitor.conftest import NOON

SITES = ["a", "b", "c", "d"]
HOUR = timedelta(hours=1)
TIMEOUT = "ssh: connect to host x port 22: Connection timed out"


@pytest.fixture
def mesh(circle: Series) -> list[Series]:
    """A ping_pong series between each ordered pair of four sites; site a has the resource host-a."""
    hosts = {}
    for name in SITES:
        site = Site.objects.create(name=name)
        hosts[name] = site.resources.create(name=f"host-{name}", scratch="/scratch")
    every = []
    for client in SITES:
        for server in SITES:
            if client != server:
                series = Series.objects.create(
                    name=f"{client}-{server}",
                    probe="ping_pong",
                    suite=circle.suite,
                    reporter=circle.reporter,
                    schedule="@hourly",
                )
                series.bindings.create(role="client", position=0, resource=hosts[client])
                series.bindings.create(role="server", position=0, resource=hosts[server])
                every.append(series)
    return every


def run_all(
    mesh: list[Series], fails_at: Callable[[str], str], *, hours_ago: int, text: str = TIMEOUT
) -> None:
    """Run each series once an hour for three hours; *fails_at* returns the resource that fails, if any."""
    for series in mesh:
        for number in range(3):
            slot = NOON - (hours_ago + number) * HOUR
            failed_at = fails_at(series.name)
            Run.objects.create(
                id=wire.run_id(series.name, slot),
                series=series,
                slot=slot,
                due_at=slot,
                state=State.FAILED if failed_at else State.PASSED,
                stage="exchange" if failed_at else "",
                reason=text if failed_at else "",
                failed_resource=failed_at,
            )
    classify_runs(NOON)


def to_b_fails(name: str) -> str:
    return f"host-{name[0]}" if name.endswith("-b") else ""


def nothing_fails(_: str) -> str:
    return ""


def test_a_dead_destination_is_named_though_the_failures_name_the_other_ends(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)
    attribute(NOON)
    verdict = Attribution.objects.get()
    assert (verdict.kind, verdict.name, verdict.failed, verdict.total) == ("destination", "b", 9, 9)
    assert verdict.probability > 0.9
    assert (verdict.since, verdict.latest_at) == (NOON - 3 * HOUR, NOON - HOUR)
    failed = Run.objects.filter(state=State.FAILED)
    assert set(explained([run.pk for run in Run.objects.all()])) == {run.pk for run in failed}
    assert of_series([mesh[0].pk, mesh[1].pk]) == {mesh[0].pk: verdict}


def test_the_availability_of_a_site_does_not_count_what_another_one_caused(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)

    def down(site: str) -> int:
        return seconds_of(site, NOON.date(), NOON).down

    # Only the failing series says something about site a.
    Series.objects.filter(name__in=["a-c", "a-d", "b-a", "c-a", "d-a"]).delete()
    before = down("a")
    attribute(NOON)
    assert (before, down("a")) == (3 * 3600, 0)


def test_a_verdict_is_confirmed_and_not_doubled(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)
    attribute(NOON)
    attribute(NOON + timedelta(minutes=1))
    assert Attribution.objects.get().decided_at == NOON
    assert AttributedRun.objects.count() == 9


def test_a_verdict_ends_when_the_latest_results_pass(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=3)
    attribute(NOON - 3 * HOUR)
    run_all(mesh, nothing_fails, hours_ago=0)
    attribute(NOON)
    assert Attribution.objects.get().ended_at == NOON
    assert of_series([series.pk for series in mesh]) == {}
    assert len(explained([run.pk for run in Run.objects.all()])) == 9  # history stays explained


def test_failures_that_do_not_count_against_a_site_are_no_evidence(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1, text="u@b: Permission denied (publickey).")
    attribute(NOON)
    assert not Attribution.objects.exists()


def test_failures_of_imported_series_are_no_evidence(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)
    Series.objects.update(probe="import-inca")
    attribute(NOON)
    assert not Attribution.objects.exists()


def test_a_verdict_is_visible_to_users_who_may_see_one_of_its_runs(
    mesh: list[Series], circle: Series
) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)
    attribute(NOON)
    insider, outsider = User.objects.create(username="in"), User.objects.create(username="out")
    seen = Attribution.objects.visible_to
    assert seen(outsider).count() == 1  # a suite without viewers is visible to all
    group = Group.objects.create(name="g")
    group.user_set.add(insider)
    circle.suite.viewers.add(group)
    assert (seen(insider).count(), seen(outsider).count(), seen(AnonymousUser()).count()) == (1, 0, 0)


def test_pages_and_api_name_the_part_at_fault(mesh: list[Series]) -> None:
    run_all(mesh, to_b_fails, hours_ago=1)
    attribute(NOON)
    failed = Run.objects.filter(series__name="a-b", state=State.FAILED).latest("slot")
    rule = AlertRule.objects.create(name="r", everything=True, condition="failures_in_row", threshold=3)
    alert = Alert.objects.create(
        rule=rule, series=failed.series, since=NOON, opened_at=NOON, opened_by_id=failed.pk, text="3 failed"
    )
    other = Series.objects.get(name="a-c")
    unexplained = Alert.objects.create(rule=rule, series=other, since=NOON, opened_at=NOON, text="silent")
    client = Client()
    client.force_login(User.objects.create(username="reader"))

    def page(path: str) -> str:
        return client.get(path).content.decode()

    linked = 'estination <a href="/sites/b/" class="site">b</a>'
    assert f"D{linked}" in page("/failures/?range=90d")
    assert f"D{linked}" in page("/failures/?range=90d&site=a")
    assert linked not in page("/failures/?range=90d&site=site-of-here")
    assert f"d{linked}" in page(f"/runs/{failed.pk}/")
    by_key = {each.alert.pk: each.at_fault for each in listed(Alert.objects.all(), NOON)}
    assert (str(by_key[alert.pk]), by_key[unexplained.pk]) == ("destination b", None)
    (verdict,) = client.get("/api/v1/failures/attributions?range=90d").json()["attributions"]
    assert (verdict["kind"], verdict["name"], len(verdict["runs"])) == ("destination", "b", 9)
    assert str(failed.pk) in verdict["runs"]
