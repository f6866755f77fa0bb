"""/api/v1/failures: proposals, and signatures accepted and withdrawn."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import ApiToken, OwnSignature, Series, Suite
from monitor.runs.ingest.service import ingest_all
from reporters import report as wire
from tests.monitor.builders import failed_circle_report
from tests.monitor.web.pages.builders import user

URL = "/api/v1/failures"
JAM: dict[str, Any] = {
    "name": "jam",
    "title": "Jammed",
    "category": "resource",
    "severity": "major",
    "patterns": ["is jammed"],
}


@pytest.fixture
def jammed(circle: Series) -> None:
    """Three runs that failed by a jammed frobnicator, and one by a full disk."""
    now = timezone.now().replace(microsecond=0)
    messages = ["No space left on device", *(f"frobnicator {number} is now jammed" for number in range(3))]
    reports = [
        failed_circle_report(now - timedelta(minutes=minutes), message=message)
        for minutes, message in enumerate(messages, start=1)
    ]
    assert all(receipt.accepted for receipt in ingest_all([wire.to_json(report) for report in reports]))
    classify_runs(now)


def post(client: Client, path: str, body: Any, **headers: Any) -> Any:
    return client.post(f"{URL}/{path}", body, content_type="application/json", **headers)


def test_proposals_are_listed_with_their_evidence(admin_client: Client, jammed: None) -> None:
    (proposal,) = admin_client.get(f"{URL}/proposals").json()["proposals"]
    assert (proposal["run_count"], proposal["series_count"], proposal["category"]) == (3, 1, "unknown")
    assert proposal["template"] == "frobnicator <number> is now jammed"
    assert proposal["patterns"] == [r"(?:^|failed: |out of time: )\s*frobnicator \d+ is now jammed\s*$"]
    assert len(proposal["examples"]) == 3


def test_proposals_are_those_of_visible_runs(client: Client, jammed: None) -> None:
    Suite.objects.get().viewers.add(Group.objects.create(name="others"))
    client.force_login(user())
    assert client.get(f"{URL}/proposals").json()["proposals"] == []


def test_a_proposal_is_accepted_and_withdrawn(admin_client: Client, jammed: None) -> None:
    (proposal,) = admin_client.get(f"{URL}/proposals").json()["proposals"]
    body = {key: proposal[key] for key in ("name", "title", "category", "severity", "patterns")}
    accepted = post(admin_client, "signatures", body)
    assert accepted.status_code == 201
    created = accepted.json()
    assert (created["origin"], created["version"], created["changed_by"]) == ("page", 1, "admin")
    classify_runs(timezone.now())
    assert {run["signature"] for run in admin_client.get(URL).json()["failures"]} == {
        "disk-full",
        proposal["name"],
    }
    listed = {
        each["name"]: each["origin"]
        for each in admin_client.get(f"{URL}/signatures?limit=1000").json()["signatures"]
    }
    assert (listed["disk-full"], listed[proposal["name"]]) == ("shipped", "page")
    assert admin_client.get(f"{URL}/own-signatures").json()["signatures"] == [created]
    path = f"signatures/{proposal['name']}/withdraw"
    assert post(admin_client, path, {"version": 2}).status_code == 409
    assert post(admin_client, path, {"version": 1}).status_code == 204
    assert post(admin_client, path, {"version": 1}).json()["detail"].endswith("is withdrawn")
    assert admin_client.get(f"{URL}/own-signatures").json()["signatures"] == []


def test_a_signature_that_matches_other_causes_needs_a_confirmation(
    admin_client: Client, jammed: None
) -> None:
    greedy = {**JAM, "patterns": ["e"]}
    refused = post(admin_client, "signatures", greedy)
    assert (refused.status_code, refused.json()["code"]) == (409, "matches_named")
    assert "1 runs that other signatures name: disk-full" in refused.json()["detail"]
    assert post(admin_client, "signatures", {**greedy, "is_confirmed": True}).status_code == 201


@pytest.mark.parametrize(
    ("changed", "status", "detail"),
    [
        ({"patterns": ["(a"]}, 422, "not a regular expression of RE2"),
        ({"name": "Jam!"}, 422, "name: expected a name"),
        ({"category": "weather"}, 422, "category"),
        ({"name": "disk-full"}, 409, "gridcast ships a signature disk-full"),
        ({"patterns": ["\ud800"]}, 422, ""),
        ({"precedence": 10**30}, 422, ""),
    ],
)
def test_an_invalid_signature_is_refused(
    admin_client: Client, changed: dict[str, Any], status: int, detail: str
) -> None:
    refused = post(admin_client, "signatures", {**JAM, **changed})
    assert refused.status_code == status
    assert detail in refused.json()["detail"]
    assert not OwnSignature.objects.exists()


@pytest.mark.parametrize(("scope", "has_permission"), [("run", True), ("manage", False)])
@pytest.mark.django_db
def test_a_token_needs_the_scope_and_its_user_the_permission(
    client: Client, scope: str, has_permission: bool
) -> None:
    program = user("program")
    if has_permission:
        program.user_permissions.add(Permission.objects.get(codename="manage_signatures"))
    headers = {"HTTP_AUTHORIZATION": f"Bearer {ApiToken.objects.issue(program, 'robot', [scope])}"}
    for path, body in (("signatures", JAM), ("signatures/jam/withdraw", {"version": 1})):
        assert post(client, path, body, **headers).status_code == 403
    assert not OwnSignature.objects.exists()
