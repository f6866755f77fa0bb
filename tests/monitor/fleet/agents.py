"""An agent of a remote reporter: signs with the programs of a site, and sends its requests over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from monitor.fleet.enrolment import create_code
from monitor.fleet.signatures import OPENSSL, Purpose
from monitor.models import Reporter, Site
from tests.monitor.fleet.site_keys import SiteKey, site_key

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

    def bearer(self, **changes: Any) -> dict[str, str]:
        now = timezone.now().timestamp()
        return {"authorization": f"Bearer {self.key.token(self.reporter, now, **changes)}"}


def enrolled_agent(reporter: Reporter, directory: Path, method: str = OPENSSL) -> SiteAgent:
    agent = SiteAgent(reporter, directory, method)
    answer = agent.enrol(create_code(reporter, admin(), timezone.now()))
    assert answer.status_code == 200, answer.content
    return agent
