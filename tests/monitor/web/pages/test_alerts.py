"""The page of alerts, and the marks of open alerts on other pages."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from monitor.models import Alert, AlertRule, Notification, Reporter, Run, Series
from monitor.models.alert import Event
from monitor.models.run import State
from monitor.web.pages import alerts as alerts_page
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

HTMX = {"HX-Request": "true"}
PATH = "/alerts/"


def text(client: Client, path: str = PATH) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.fixture
def rule(db: None) -> AlertRule:
    return AlertRule.objects.create(
        name="three-in-a-row", everything=True, condition="failures_in_row", threshold=3
    )


def alert(rule: AlertRule, series: Series, now: datetime, message: str = "it is <b>down") -> Alert:
    run = builders.not_run(series, now - timedelta(minutes=Run.objects.count()), State.MISSED, "")
    return Alert.objects.create(
        rule=rule, series=series, since=now - timedelta(hours=1), opened_at=now, opened_by=run, text=message
    )


def close(opened: Alert, now: datetime) -> None:
    Alert.objects.filter(pk=opened.pk).update(
        closed_at=now, closed_by=opened.opened_by, closed_text="passed at noon"
    )


def test_without_rules_the_page_says_how_to_define_them(grid: Grid, client: Client) -> None:
    shown = text(client)
    assert "No rules defined" in shown
    assert "No resolved alerts" in shown


def test_without_open_alerts_the_page_says_so(grid: Grid, client: Client, rule: AlertRule) -> None:
    shown = text(client)
    assert "1 rule enabled" in shown
    assert "No open alerts" in shown


def test_many_open_alerts_have_pages(
    grid: Grid, client: Client, rule: AlertRule, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerts_page, "OPEN_A_PAGE", 1)
    alert(rule, grid.gather, now, "the first")
    alert(rule, grid.circle, now - timedelta(minutes=1), "the second")
    first, second = text(client), text(client, f"{PATH}?page=2")
    assert "2 open" in first
    assert ("The first" in first, "The second" in first) == (True, False)
    assert ("The first" in second, "The second" in second) == (False, True)


def test_open_alerts_come_first_with_reason_start_and_run(
    grid: Grid, client: Client, rule: AlertRule, now: datetime
) -> None:
    over = alert(rule, grid.circle, now, "it was down")
    close(over, now)
    opened = alert(rule, grid.gather, now)
    shown = text(client)
    assert shown.index("It is &lt;b&gt;down") < shown.index("It was down") < shown.index("Passed at noon")
    assert "<b>down" not in shown
    for part in ("three-in-a-row", "/series/gather-main/", f"/runs/{opened.opened_by_id}/", ">1 h ago<"):
        assert part in shown


@pytest.mark.parametrize("path", ["/", "/series/gather-main/", "/holds/"])
def test_every_page_shows_the_number_of_open_alerts(
    grid: Grid, client: Client, rule: AlertRule, now: datetime, path: str
) -> None:
    assert 'class="count"' not in text(client, path)
    alert(rule, grid.gather, now)
    assert '<span class="count">1<span class="visually-hidden"> open alert</span></span>' in text(
        client, path
    )


def test_a_series_with_an_open_alert_is_marked(
    grid: Grid, client: Client, rule: AlertRule, now: datetime
) -> None:
    opened = alert(rule, grid.gather, now)
    assert "1 alert</a>" in text(client, "/")
    assert "It is &lt;b&gt;down" in text(client, "/series/gather-main/")
    assert "It is &lt;b&gt;down" not in text(client, "/series/circle-ring/")
    close(opened, now)
    assert "1 alert</a>" not in text(client, "/")
    assert "It is &lt;b&gt;down" not in text(client, "/series/gather-main/")


@pytest.mark.parametrize("path", ["/", "/series/gather-main/", PATH])
def test_an_open_page_is_updated_when_an_alert_opens_and_closes(
    grid: Grid, client: Client, rule: AlertRule, now: datetime, path: str
) -> None:
    def seen() -> str:
        part = client.get(path, headers=HTMX).content.decode()
        return part.split("seen=")[1].split('"')[0]

    def is_updated(digest: str) -> bool:
        return client.get(path, {"seen": digest}, headers=HTMX).status_code == 200

    builders.not_run(grid.gather, now, State.MISSED, "")
    before = seen()
    assert not is_updated(before)
    run = Run.objects.get()
    opened = Alert.objects.create(
        rule=rule, series=grid.gather, since=now, opened_at=now, opened_by=run, text="down"
    )
    assert is_updated(before)
    while_open = seen()
    close(opened, now)
    assert is_updated(while_open)


def test_alerts_of_invisible_series_are_not_shown(
    grid: Grid, client: Client, rule: AlertRule, now: datetime
) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    secret = builders.circle("secret-ring", grid.resources[:2], in_suite="closed")
    alert(rule, secret, now, "nobody shall know")
    close(alert(rule, grid.circle, now, "everybody knows"), now)
    close(
        alert(
            AlertRule.objects.create(name="b", condition="silent_seconds", threshold=60),
            secret,
            now,
            "nobody shall know",
        ),
        now,
    )
    shown = text(client)
    assert "Everybody knows" in shown
    assert "obody shall know" not in shown
    assert 'class="count"' not in shown
    assert "1 alert</a>" not in text(client, "/")


def test_an_acknowledged_alert_stays_listed_and_is_no_longer_counted(
    grid: Grid, client: Client, runner: Client, rule: AlertRule, now: datetime
) -> None:
    opened = alert(rule, grid.gather, now)
    path = f"{PATH}{opened.pk}/acknowledge/"
    assert "Acknowledge</button>" not in text(client)
    assert client.post(path).status_code == 403
    assert "Acknowledge</button>" in text(runner)
    assert "acknowledged by runner" in runner.post(path, follow=True).content.decode()
    assert 'class="count"' not in text(client)
    assert "is resolved or acknowledged already" in runner.post(path, follow=True).content.decode()
    opened.refresh_from_db()
    assert opened.closed_at is None


@pytest.mark.parametrize("path", ["/", "/holds/", "/reporters/"])
def test_alerts_of_reporters_are_counted_too(
    grid: Grid, client: Client, rule: AlertRule, now: datetime, path: str
) -> None:
    home = Reporter.objects.get(name="home")
    Alert.objects.create(rule=rule, reporter=home, since=now, opened_at=now, text="it lags")
    assert '<span class="count">1<span class="visually-hidden"> open alert</span></span>' in text(
        client, path
    )


def test_an_alert_of_an_invisible_series_cannot_be_acknowledged(
    grid: Grid, runner: Client, rule: AlertRule, now: datetime
) -> None:
    builders.suite("closed").viewers.add(Group.objects.create(name="physicists"))
    opened = alert(rule, builders.circle("secret-ring", grid.resources[:2], in_suite="closed"), now)
    assert runner.post(f"{PATH}{opened.pk}/acknowledge/").status_code == 404
    opened.refresh_from_db()
    assert opened.acknowledged_at is None


def test_anonymous_users_are_sent_to_the_login_page(db: None) -> None:
    assert Client().get(PATH)["Location"] == f"/login/?next={PATH}"


def test_an_undelivered_notification_is_shown_to_administrators_with_its_error(
    grid: Grid, client: Client, rule: AlertRule, now: datetime
) -> None:
    opened = alert(rule, grid.gather, now)
    channel = {"kind": "email", "to": ["ada@example.org"]}
    Notification.objects.create(
        alert=opened, event=Event.OPENED, channel=channel, attempts=6, error="550 go away"
    )
    shown = text(client)
    assert "email not delivered" in shown
    assert "550 go away" not in shown
    admin = Client()
    admin.force_login(User.objects.create_superuser("admin"))
    assert "550 go away" in text(admin)


def test_the_number_of_queries_does_not_depend_on_how_many_alerts_there_are(
    grid: Grid,
    client: Client,
    rule: AlertRule,
    now: datetime,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    text(client)
    for count in range(2):
        for i in range(5):
            other = AlertRule.objects.create(
                name=f"rule-{count}-{i}", everything=True, condition="failures_in_row", threshold=1
            )
            opened = alert(other, grid.gather, now)
            Notification.objects.create(alert=opened, event=Event.OPENED, channel={"kind": "log"})
            close(alert(other, grid.circle, now), now)
        with django_assert_num_queries(13):
            client.get(PATH, headers=HTMX)
