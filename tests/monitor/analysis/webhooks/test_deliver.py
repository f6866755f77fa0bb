"""Webhooks get every ended run and every site that goes down or up: in order, signed, at least once."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum
from django.test import Client
from django.utils import timezone

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.analysis.webhooks import deliver, signature
from monitor.analysis.webhooks.announce_sites import SiteReport, announce_present_states, announce_sites
from monitor.analysis.webhooks.define import InvalidWebhook, WebhookDefinition, define_webhook, follow_runs
from monitor.analysis.webhooks.enqueue import enqueue, ping, site_deliveries
from monitor.core.egress.backoff import pause_after
from monitor.depot.rollups.worker import gather
from monitor.models import (
    AuditEvent,
    EndedRun,
    Incident,
    Run,
    Series,
    Suite,
    Webhook,
    WebhookDelivery,
    WebhookReceiver,
)
from monitor.models.incident import MONITOR
from monitor.models.run import State
from monitor.models.webhook import DeliveryState, EventType
from tests.monitor.receivers import ACCEPTS, REFUSES, Hook, hook
from tests.monitor.web.pages import builders

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEY = bytes(range(32))
REFUSED = "cannot connect to site2.example.org:22: Connection refused"


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as server:
        yield server


@pytest.fixture
def ring(db: None) -> Series:
    (ring,) = builders.circles(["ring"], builders.sites(2))
    return ring


def ada() -> User:
    """Return an administrator."""
    user, _ = User.objects.get_or_create(username="ada", defaults={"is_superuser": True})
    return user


def webhook(receiver: Hook, name: str = "ops", **changes: Any) -> Webhook:
    values = {"url": f"http://{receiver.address}/in", "events": [EventType.RUN_ENDED], **changes}
    return define_webhook(WebhookDefinition(name, **values), author=ada(), now=NOW)[0]


def states(name: str = "ops") -> list[str]:
    rows = WebhookDelivery.objects.filter(webhook__name=name).order_by("pk")
    return list(rows.values_list("state", flat=True))


def run_and_deliver(ring: Series, slots: int) -> list[Run]:
    """Have runs of *ring* pass, and deliver what is due."""
    now = timezone.now()
    runs = [builders.passed(ring, now - (slots - number) * MINUTE) for number in range(slots)]
    deliver.deliver_webhooks(timezone.now())
    return runs


def test_an_ended_run_is_told_with_its_signature(
    ring: Series, receiver: Hook, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.GRIDCAST_URL = "https://gridcast.example.org"
    monkeypatch.setenv("GRIDCAST_WEBHOOK_OPS", "whsec_" + base64.b64encode(KEY).decode())
    webhook(receiver, secret_variable="GRIDCAST_WEBHOOK_OPS")
    (run,) = run_and_deliver(ring, 1)
    ((headers, body),) = receiver.requests
    message, at = headers["webhook-id"], int(headers["webhook-timestamp"])
    expected = signature.headers(message, at, body, [KEY])["webhook-signature"]
    assert headers["webhook-signature"] == expected
    content = json.loads(body)
    assert content["type"] == "run.ended"
    assert content["data"]["id"] == str(run.pk)
    assert content["data"]["sites"] == ["site1", "site2"]
    assert (content["data"]["series"], content["data"]["state"]) == ("ring", "passed")
    assert content["data"]["url"] == f"https://gridcast.example.org/runs/{run.pk}/"
    assert states() == [DeliveryState.DELIVERED]


def test_a_failed_run_waits_for_its_signature_and_names_it(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    now = timezone.now()
    report = builders.report(ring, now - MINUTE)
    builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    deliver.deliver_webhooks(timezone.now())
    assert receiver.requests == []
    classify_runs(timezone.now())
    deliver.deliver_webhooks(timezone.now())
    (data,) = receiver.data()
    assert (data["state"], data["stage"], data["resource"]) == ("failed", "transfer_ring", "site2-login")
    assert data["signature"] is not None


def test_a_failed_run_is_not_held_up_for_long_by_its_classification(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    report = builders.report(ring, timezone.now() - MINUTE)
    builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    deliver.deliver_webhooks(timezone.now() + MINUTE)
    assert [data["signature"] for data in receiver.data()] == [None]


def test_a_late_report_is_a_second_event(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    slot = timezone.now() - MINUTE
    builders.not_run(ring, slot, State.MISSED, "no report")
    builders.passed(ring, slot)
    deliver.deliver_webhooks(timezone.now())
    assert [data["state"] for data in receiver.data()] == ["missed", "passed"]


def test_messages_are_sent_in_order_and_wait_for_the_first(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    receiver.mode = REFUSES
    runs = run_and_deliver(ring, 3)
    first, *later = WebhookDelivery.objects.order_by("pk")
    assert (first.attempts, [each.attempts for each in later]) == (1, [0, 0])
    assert "answered 503: come back later" in first.error
    receiver.mode = ACCEPTS
    deliver.deliver_webhooks(timezone.now())
    assert receiver.requests == [], "the pause is not over"
    deliver.deliver_webhooks(timezone.now() + pause_after(1))
    assert [data["id"] for data in receiver.data()] == [str(run.pk) for run in runs]
    assert states() == [DeliveryState.DELIVERED] * 3


def test_the_id_of_a_message_is_the_same_in_every_attempt(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    run_and_deliver(ring, 1)
    delivery = WebhookDelivery.objects.get()
    deliver.redeliver(delivery, timezone.now())
    deliver.deliver_webhooks(timezone.now())
    ids = [headers["webhook-id"] for headers, _ in receiver.requests]
    assert ids == [delivery.message] * 2


@pytest.mark.parametrize(
    ("status", "attempts"),
    [(503, deliver.MAX_ATTEMPTS), (429, deliver.MAX_ATTEMPTS), (422, deliver.MAX_REFUSALS)],
)
def test_a_message_that_is_never_accepted_is_dead_and_lets_the_next_pass(
    ring: Series, receiver: Hook, status: int, attempts: int
) -> None:
    webhook(receiver)
    receiver.mode, receiver.answer = REFUSES, (status, {})
    run_and_deliver(ring, 2)
    now = timezone.now()
    for attempt in range(1, attempts):
        now += pause_after(attempt)
        deliver.deliver_webhooks(now)
    first, second = WebhookDelivery.objects.order_by("pk")
    assert (first.state, first.attempts, first.due_at) == (DeliveryState.DEAD, attempts, None)
    receiver.mode = ACCEPTS
    deliver.deliver_webhooks(now + MINUTE)
    second.refresh_from_db()
    assert second.state == DeliveryState.DELIVERED
    deliver.redeliver(first, now)
    deliver.deliver_webhooks(now)
    assert states() == [DeliveryState.DELIVERED] * 2


def test_one_receiver_that_is_away_does_not_delay_the_others(ring: Series, receiver: Hook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        away = closed.getsockname()[1]
    webhook(receiver, "away", url=f"http://127.0.0.1:{away}/")
    webhook(receiver)
    run_and_deliver(ring, 2)
    assert states() == [DeliveryState.DELIVERED] * 2
    assert states("away") == [DeliveryState.PENDING] * 2


def test_an_internal_receiver_is_refused_and_the_error_kept(
    ring: Series, receiver: Hook, settings: Any
) -> None:
    settings.GRIDCAST_INTERNAL_WEBHOOK_HOSTS = frozenset()
    webhook(receiver)
    run_and_deliver(ring, 1)
    assert "loopback address 127.0.0.1" in WebhookDelivery.objects.get().error
    assert receiver.requests == []


def test_suites_and_sites_select_the_runs(ring: Series, receiver: Hook) -> None:
    builders.circles(["other"], builders.sites(1), in_suite="side")
    webhook(receiver, "main", suites=["main"])
    webhook(receiver, "side", suites=["side"])
    webhook(receiver, "site2", sites=["site2"])
    run_and_deliver(ring, 1)
    run_and_deliver(Series.objects.get(name="other"), 1)
    assert [len(states(name)) for name in ("main", "side", "site2")] == [1, 1, 1]


def test_without_a_webhook_no_ended_run_is_kept(ring: Series, receiver: Hook) -> None:
    run_and_deliver(ring, 1)
    assert not EndedRun.objects.exists()
    made = webhook(receiver)
    builders.passed(ring, timezone.now() - 5 * MINUTE)
    assert EndedRun.objects.count() == 1
    made.delete()
    follow_runs()
    assert not EndedRun.objects.exists()


def test_a_disabled_webhook_gets_nothing(ring: Series, receiver: Hook) -> None:
    webhook(receiver, enabled=False)
    run_and_deliver(ring, 1)
    assert states() == []


def test_a_backlog_beyond_the_maximum_is_dead_and_can_be_repeated(ring: Series, receiver: Hook) -> None:
    webhook(receiver, events=[EventType.SITE_DOWN])
    messages = [
        message
        for site in ("site1", "site2")
        for message in site_deliveries(EventType.SITE_DOWN, site, NOW, {}, NOW)
    ]
    enqueue(messages, NOW, most=1)
    assert states() == [DeliveryState.PENDING, DeliveryState.DEAD]
    deliver.redeliver(WebhookDelivery.objects.get(state=DeliveryState.DEAD), NOW)
    deliver.deliver_webhooks(NOW)
    assert [data["site"] for data in receiver.data()] == ["site1", "site2"]


def test_old_records_are_pruned(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    run_and_deliver(ring, 1)
    assert deliver.prune_deliveries(timezone.now()) == 0
    assert deliver.prune_deliveries(timezone.now() + deliver.KEEP_DELIVERED + MINUTE) == 1


def test_a_ping_tests_a_receiver(ring: Series, receiver: Hook) -> None:
    ping(webhook(receiver), timezone.now())
    deliver.deliver_webhooks(timezone.now())
    assert [json.loads(body)["type"] for _, body in receiver.requests] == ["webhook.ping"]


def test_a_site_that_goes_down_and_comes_up_is_told_once_each(ring: Series, receiver: Hook) -> None:
    webhook(receiver, events=[EventType.SITE_DOWN, EventType.SITE_UP])
    up, down = SiteReport(False, NOW), SiteReport(True, NOW + MINUTE, ("site1-login: refused",))
    back = SiteReport(False, NOW + 2 * MINUTE)
    for report in (up, up, down, down, back, back):
        announce_sites({"site1": report}, NOW)
    announce_sites({}, NOW)  # unknown
    deliver.deliver_webhooks(timezone.now())
    contents = [json.loads(body) for _, body in receiver.requests]
    assert [(each["type"], each["data"]["site"]) for each in contents] == [
        ("site.down", "site1"),
        ("site.up", "site1"),
    ]
    assert contents[0]["data"]["reasons"] == ["site1-login: refused"]
    assert contents[1]["data"]["down_since"] == contents[0]["data"]["since"]


def test_a_site_that_is_down_again_since_the_same_time_is_told_again(ring: Series, receiver: Hook) -> None:
    """A late report had the site up meanwhile."""
    webhook(receiver, events=[EventType.SITE_DOWN, EventType.SITE_UP])
    for is_down in (True, False, True, False):
        announce_sites({"site1": SiteReport(is_down, NOW)}, NOW)
    events = list(WebhookDelivery.objects.order_by("pk").values_list("event", flat=True))
    assert events == ["site.down", "site.up", "site.down", "site.up"]


def test_failures_at_a_site_are_told_unless_the_monitor_is_suspected(ring: Series, receiver: Hook) -> None:
    webhook(receiver, events=[EventType.SITE_DOWN, EventType.SITE_UP])
    now = timezone.now()
    for minutes in (5, 4, 3):
        report = builders.report(ring, now - minutes * MINUTE)
        builders.delivered(builders.failed(report, "transfer_ring", "site2-login", REFUSED))
    gather()
    suspicion = Incident.objects.create(kind=MONITOR, since=now, opened_at=now)
    assert announce_present_states(now) == []
    suspicion.delete()
    assert announce_present_states(now) == [EventType.SITE_DOWN]
    builders.passed(ring, now - 2 * MINUTE)
    gather()
    assert announce_present_states(now) == [EventType.SITE_UP]
    deliver.deliver_webhooks(timezone.now())
    down, up = receiver.data()
    assert (down["site"], up["site"]) == ("site2", "site2")
    assert "the last 3 runs failed at site2-login" in down["reasons"][0]


def test_a_site_that_is_down_at_first_is_told(ring: Series, receiver: Hook) -> None:
    webhook(receiver, events=[EventType.SITE_DOWN], sites=["site1"])
    announce_sites({name: SiteReport(True, NOW) for name in ("site1", "site2")}, NOW)
    assert [row.subject for row in WebhookDelivery.objects.all()] == ["site1"]


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("name", {"name": "a b"}),
        ("url", {"url": "ftp://example.org/"}),
        ("url", {"url": "https://example.org/" + "a" * 2000}),
        ("events", {"events": []}),
        ("events", {"events": ["run.started"]}),
        ("events", {"events": ["webhook.ping"]}),
        ("secret_variable", {"secret_variable": "DATABASE_URL"}),
        ("suites", {"suites": ["nowhere"]}),
        ("sites", {"sites": ["nowhere"]}),
    ],
)
def test_an_invalid_definition_is_refused_with_the_field(
    db: None, field: str, changes: dict[str, Any]
) -> None:
    Suite.objects.create(name="main")
    valid: dict[str, Any] = {"name": "ops", "url": "https://hooks.example.org/", "events": ["run.ended"]}
    with pytest.raises(InvalidWebhook, match=f"^{field}: ") as refused:
        define_webhook(WebhookDefinition(**{**valid, **changes}), author=ada(), now=NOW)
    assert list(refused.value.problems) == [field]
    assert not Webhook.objects.exists()


def accepted_after(receiver: Hook, later: timedelta) -> int:
    """Return how many messages the receiver, well again, has got when the worker delivers *later*."""
    before = len(receiver.requests)
    receiver.mode = ACCEPTS
    deliver.deliver_webhooks(timezone.now() + later)
    return len(receiver.requests) - before


@pytest.mark.parametrize("status", [429, 503])
def test_a_receiver_that_asks_for_an_hour_gets_nothing_for_an_hour(
    ring: Series, receiver: Hook, status: int
) -> None:
    webhook(receiver)
    webhook(receiver, name="other")  # of the same receiver
    receiver.mode, receiver.answer = REFUSES, (status, {"Retry-After": "3600"})
    run_and_deliver(ring, 3)
    attempts = WebhookDelivery.objects.aggregate(total=Sum("attempts"))["total"]
    assert attempts == 1, "one answer holds for all messages to the receiver"
    ping(Webhook.objects.get(name="ops"), timezone.now())  # a test by a user waits, too
    assert accepted_after(receiver, timedelta(minutes=55)) == 0
    assert accepted_after(receiver, timedelta(minutes=61)) == 7
    runs = [json.loads(each)["data"]["slot"] for each in receiver.received() if "run.ended" in each]
    assert len(runs) == 6
    assert runs == [*sorted(runs[:3]), *sorted(runs[3:])], "each webhook in order"


def test_other_answers_do_not_ask_for_a_pause(ring: Series, receiver: Hook) -> None:
    webhook(receiver)
    receiver.mode, receiver.answer = REFUSES, (500, {"Retry-After": "3600"})
    run_and_deliver(ring, 1)
    assert not WebhookReceiver.objects.exists()
    assert accepted_after(receiver, timedelta(minutes=5)) == 1


def test_a_receiver_that_is_gone_disables_its_webhooks_with_a_message(
    ring: Series, receiver: Hook, admin_client: Client
) -> None:
    webhook(receiver)
    webhook(receiver, name="other")
    receiver.mode, receiver.answer = REFUSES, (410, {})
    run_and_deliver(ring, 2)
    assert set(Webhook.objects.values_list("enabled", flat=True)) == {False}
    (event,) = AuditEvent.objects.filter(action="disable webhook")
    assert {change["name"] for change in event.changes} == {"ops", "other"}
    assert "/in" not in json.dumps(event.changes), "the path may be a secret"
    answer = f"http://{receiver.address} answered 410"
    assert answer in admin_client.get("/settings/webhooks/").content.decode()
    assert answer in admin_client.get("/api/v1/webhooks/ops").json()["disabled_because"]
    assert accepted_after(receiver, timedelta(days=1)) == 0
    for name in ("ops", "other"):
        webhook(receiver, name=name)  # enabled again
    assert not WebhookReceiver.objects.exists()
    assert accepted_after(receiver, timedelta(days=1)) == 4, "none was lost"
    assert admin_client.get("/api/v1/webhooks/ops").json()["disabled_because"] == ""


def test_a_pause_that_is_over_is_forgotten(db: None) -> None:
    WebhookReceiver.objects.create(url="https://a.example.org", resume_at=NOW - MINUTE, answer="429")
    WebhookReceiver.objects.create(url="https://b.example.org", resume_at=NOW + MINUTE, answer="429")
    WebhookReceiver.objects.create(url="https://c.example.org", gone_at=NOW - MINUTE, answer="410")
    deliver.prune_deliveries(NOW)
    assert [each.url[8] for each in WebhookReceiver.objects.order_by("url")] == ["b", "c"]
