"""Webhooks over the API and on their page: defined, tested, followed and repeated by users who may."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from monitor.analysis.webhooks.deliver import MAX_REFUSALS, deliver_webhooks
from monitor.core.egress.backoff import pause_after
from monitor.models import ApiToken, Series, Webhook, WebhookDelivery
from monitor.models.token import MANAGE, READ
from monitor.models.webhook import DeliveryState
from tests.monitor.receivers import ACCEPTS, REFUSES, Hook, hook
from tests.monitor.web.pages import builders

OPS = {"url": "https://hooks.example.org/in", "events": ["run.ended"]}


@pytest.fixture
def manager(db: None) -> User:
    user = builders.user("ada")
    user.user_permissions.add(Permission.objects.get(codename="manage_webhooks"))
    return user


@pytest.fixture
def client(manager: User) -> Client:
    return with_scopes(manager, READ, MANAGE)


@pytest.fixture
def receiver() -> Iterator[Hook]:
    with hook() as server:
        yield server


@pytest.fixture
def ring(db: None) -> Series:
    (ring,) = builders.circles(["ring"], builders.sites(2))
    return ring


def with_scopes(user: User, *scopes: str) -> Client:
    token = ApiToken.objects.issue(user, "script", list(scopes))
    return Client(headers={"authorization": f"Bearer {token}"}, raise_request_exception=False)


def put(client: Client, name: str = "ops", **changes: Any) -> Any:
    return client.put(f"/api/v1/webhooks/{name}", {**OPS, **changes}, content_type="application/json")


def test_a_webhook_is_created_replaced_listed_and_deleted(client: Client, ring: Series) -> None:
    answer = put(client, suites=["main"], sites=["site1"])
    assert (answer.status_code, answer["Location"]) == (201, "/api/v1/webhooks/ops")
    assert put(client, events=["site.down"]).status_code == 200
    (listed,) = client.get("/api/v1/webhooks").json()["webhooks"]
    assert listed == client.get("/api/v1/webhooks/ops").json()
    assert (listed["events"], listed["suites"], listed["created_by"]) == (["site.down"], [], "ada")
    assert client.delete("/api/v1/webhooks/ops").status_code == 204
    assert client.get("/api/v1/webhooks/ops").json()["code"] == "unknown_webhook"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "ftp://example.org"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["webhook.ping"]}, "events"),
        ({"sites": ["nowhere"]}, "sites"),
        ({"secret_variable": "HOME"}, "secret_variable"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_invalid_webhook_is_refused_with_its_field(
    client: Client, changes: dict[str, Any], field: str
) -> None:
    answer = put(client, **changes)
    assert answer.status_code == 422
    assert field in answer.json()["detail"]
    assert not Webhook.objects.exists()


def test_only_users_and_tokens_that_may_manage_see_webhooks(client: Client, manager: User) -> None:
    put(client)
    for other in (with_scopes(manager, READ), with_scopes(builders.user("bob"), READ, MANAGE)):
        assert put(other).status_code == 403
        for path in ("", "/ops", "/ops/deliveries", "/nowhere"):
            assert other.get(f"/api/v1/webhooks{path}").status_code == 403
        assert other.delete("/api/v1/webhooks/ops").status_code == 403
        assert other.post("/api/v1/webhooks/ops/ping").status_code == 403


def test_a_dead_message_is_listed_and_delivered_again(client: Client, ring: Series, receiver: Hook) -> None:
    put(client, url=f"http://{receiver.address}/in")
    receiver.mode, receiver.answer = REFUSES, (422, {})
    now = timezone.now()
    builders.passed(ring, now - timedelta(minutes=1))
    for attempt in range(1, MAX_REFUSALS + 1):
        deliver_webhooks(now)
        now += pause_after(attempt)
    path = "/api/v1/webhooks/ops/deliveries"
    (dead,) = client.get(path, {"state": "dead"}).json()["deliveries"]
    assert (dead["attempts"], dead["event"], dead["subject"]) == (MAX_REFUSALS, "run.ended", "ring")
    assert "answered 422" in dead["error"]
    assert dead["body"]["data"]["state"] == "passed"
    assert client.get("/api/v1/webhooks/ops").json()["dead"] == 1
    receiver.mode = ACCEPTS
    assert client.post(f"{path}/{dead['id']}/redeliver").status_code == 202
    deliver_webhooks(timezone.now())
    assert client.get(path, {"state": "delivered"}).json()["deliveries"][0]["id"] == dead["id"]
    assert [data["series"] for data in receiver.data()] == ["ring"]
    assert client.post(f"{path}/{2**62}/redeliver").json()["code"] == "unknown_delivery"


def test_a_ping_is_sent_to_the_receiver(client: Client, receiver: Hook) -> None:
    put(client, url=f"http://{receiver.address}/in")
    assert client.post("/api/v1/webhooks/ops/ping").status_code == 202
    deliver_webhooks(timezone.now())
    assert receiver.data() == [{"webhook": "ops"}]


def test_the_page_lists_webhooks_and_sends_dead_messages_again(
    client: Client, manager: User, ring: Series, receiver: Hook
) -> None:
    put(client, url=f"http://{receiver.address}/in")
    browser = Client()
    browser.force_login(manager)
    assert browser.post("/settings/webhooks/test/ops/").status_code == 302
    deliver_webhooks(timezone.now())
    page = browser.get("/settings/webhooks/?webhook=ops&state=delivered").content.decode()
    assert "webhook.ping" in page
    delivery = WebhookDelivery.objects.get()
    assert browser.post(f"/settings/webhooks/redeliver/{delivery.pk}/").status_code == 302
    assert WebhookDelivery.objects.get().state == DeliveryState.PENDING
    assert "None is dead" in browser.get("/settings/webhooks/?state=dead").content.decode()


def test_the_page_is_for_users_who_may_manage_webhooks(client: Client) -> None:
    browser = Client()
    browser.force_login(builders.user("bob"))
    assert browser.get("/settings/webhooks/").status_code == 403
    assert browser.post("/settings/webhooks/test/ops/").status_code == 403
