"""An agent of a remote reporter: signs with the programs of a site, and sends its requests over HTTP."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.models import Reporter, Site
from monitor.runs.fleet.enrolment import create_code
from monitor.runs.fleet.signatures import OPENSSL, Purpose
from monitor.web.api.reporter_exchange import RECORDS
from reporters.report import rfc3339
from reporters.spool.records import Part, encode_parts
from tests.monitor.runs.fleet.site_keys import SiteKey, site_key

ROOT = "/api/v1/reporters"


def remote_reporter(name: str = "ncsa") -> Reporter:
    """Create a reporter at the site *name*."""
    site, _ = Site.objects.get_or_create(name=name)
    return Reporter.objects.create(name=name, site=site)


def admin() -> User:
    user, _ = User.objects.get_or_create(username="ada", is_superuser=True)
    return user


def normalised(code: str) -> bytes:
    return code.upper().replace("-", "").encode(errors="replace")


class SiteAgent:
    """The agent of *reporter*, with a key pair in *directory*."""

    def __init__(self, reporter: Reporter, directory: Path, method: str = OPENSSL) -> None:
        self.reporter = reporter.name
        self.key: SiteKey = site_key(directory, method, reporter.name)
        self.client = Client(enforce_csrf_checks=True)

    def enrolment(self, code: str, **changes: Any) -> dict[str, Any]:
        signature = self.key.sign(Purpose.ENROLMENT, normalised(code))
        body = {"code": code, "method": self.key.method, "public_key": self.key.public}
        return {**body, "signature": signature, "hostname": "login1.example.org", **changes}

    def enrol(self, code: str, **changes: Any) -> Any:
        body = self.enrolment(code, **changes)
        return self.client.post(f"{ROOT}/enrol", body, content_type="application/json")

    def exchange(self, state: dict[str, Any] | None = None, **changes: Any) -> Any:
        """Send *state* (default: that of an agent that has just started, with *changes*)."""
        body = json.dumps(agent_state(**changes) if state is None else state)
        return self.post("exchange", body.encode(), "application/json")

    def deliver(self, parts: Sequence[Part], **headers: str) -> Any:
        body = gzip.compress(encode_parts(parts))
        return self.post("records", body, RECORDS, **{"content-encoding": "gzip", **headers})

    def post(self, path: str, body: bytes, content_type: str, **headers: str) -> Any:
        """Send *body* to *path* below the path of this agent's reporter."""
        url = path if path.startswith("/") else f"{ROOT}/{self.reporter}/{path}"
        return self.client.post(url, body, content_type, headers={**self.bearer(), **headers})

    def bearer(self, **changes: Any) -> dict[str, str]:
        now = timezone.now().timestamp()
        return {"authorization": f"Bearer {self.key.token(self.reporter, now, **changes)}"}


def agent_state(**changes: Any) -> dict[str, Any]:
    """Return the state of an agent that has just started, with *changes*."""
    now = timezone.now()
    state: dict[str, Any] = {
        "sent_at": now.timestamp(),
        "started_at": rfc3339(now),
        "hostname": "login1.example.org",
        "archive_sha256": "a" * 64,
        "version": "0.1.0",
        "python": "3.9.18",
        "assignment": {"version": 0, "error": ""},
        "policy": {"status": "absent", "sha256": "", "error": "", "summary": {}},
        "pending_approvals": 0,
        "in_flight": [],
        "spool": {"records": 0, "bytes": 0, "oldest_at": None, "dropped_records": 0},
        "chains": [],
        "clock": {"offset_seconds": None, "bound_seconds": None},
        "messages": [],
    }
    return {**state, **changes}


def enrolled_agent(reporter: Reporter, directory: Path, method: str = OPENSSL) -> SiteAgent:
    agent = SiteAgent(reporter, directory, method)
    answer = agent.enrol(create_code(reporter, admin(), timezone.now()))
    assert answer.status_code == 200, answer.content
    return agent
