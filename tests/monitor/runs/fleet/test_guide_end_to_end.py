"""The guide for sites, word for word: its grid file, its commands and its policy, with what a site has.

A Python without packages, a server whose certificate is of its own authority, and a proxy with a password.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

import probes
from monitor.models import ReporterStatus, Run
from monitor.models.run import PENDING, State
from monitor.testbed.middleware.pki import Authority
from tests.monitor.runs.fleet.agents import admin
from tests.monitor.runs.fleet.archive_agents import command, request_runs
from tests.reporters.needs import needs
from tests.reporters.remote.agent_process import agent_process
from tests.reporters.remote.tls_terminator import tls_terminator
from tests.reporters.remote.tunnel import Tunnel, tunnel
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "reporters.md"
CREDENTIALS = "Basic " + base64.b64encode(b"operator:p@ss").decode()
REFUSED = "policy: the probe stream is forbidden"


@dataclass(frozen=True)
class SiteNetwork:
    """The server as the site reaches it, at the port *tls_port* through *proxy* only."""

    tls_port: int
    proxy: Tunnel
    ca_file: Path

    @property
    def options(self) -> list[str]:
        proxy = self.proxy.url.replace("//", "//operator:p%40ss@")
        return ["--proxy", proxy, "--ca-file", str(self.ca_file)]


@pytest.fixture
def network(live_server: LiveServer, tmp_path: Path, settings: Settings) -> Iterator[SiteNetwork]:
    needs("openssl")
    authority = Authority.create(tmp_path / "authority")
    with (
        tls_terminator(authority, int(live_server.url.rpartition(":")[2])) as port,
        tunnel(CREDENTIALS) as proxy,
    ):
        settings.GRIDCAST_URL = f"https://localhost:{port}"
        yield SiteNetwork(port, proxy, authority.identity.certificate)


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(admin())
    return client


def example(language: str) -> str:
    """Return the one block of the guide in *language*."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    return str(block)


def apply_grid_of_the_guide(directory: Path) -> None:
    """Define the guide's grid with the scratch in *directory*, and with small files for the probe disk."""
    scratch = directory / "scratch"
    scratch.mkdir(mode=0o700)
    grid = example("yaml").replace("/scratch/grid", str(scratch))
    small = f"parameters: {json.dumps(probes.load('disk').trial)}"
    file = directory / "grid.yaml"
    file.write_text(grid.replace("probe: disk,", f"probe: disk, {small},"))
    call_command("grid", "apply", str(file))


def enrolment_command(browser: Client) -> list[str]:
    """Return the arguments of the command that the reporter's page shows for the site."""
    page = browser.post("/reporters/ncsa/code/", follow=True).content.decode()
    found = re.search(r"python3 gridcast-reporter\.pyz (enrol https://\S+ [A-Z2-7-]+)", page)
    assert found, page
    return shlex.split(found[1])


@pytest.mark.nightly
def test_a_site_follows_the_guide_and_the_dashboard_says_what_it_forbids(
    network: SiteNetwork, browser: Client, pyz: Path, tmp_path: Path
) -> None:
    apply_grid_of_the_guide(tmp_path)
    state, argv = tmp_path / "state", enrolment_command(browser)
    untrusting = command(pyz, state, *argv, "--proxy", network.options[1])
    assert untrusting.returncode == 2
    assert "name its certificates with --ca-file" in untrusting.stderr
    enrolled = command(pyz, state, *argv, *network.options)
    assert enrolled.returncode == 0, enrolled.stderr
    policy_file = state / "site-policy.json"
    assert f"next: write {policy_file} " in enrolled.stdout
    policy_file.write_text(example("json"))
    policy_file.chmod(0o600)
    assert "in force: probes; disclosure full, approval ask" in command(pyz, state, "doctor").stdout
    assert REFUSED in command(pyz, state, "preview", "stream").stdout

    request_runs()
    with agent_process(state, pyz) as agent:
        assert eventually(lambda: ReporterStatus.objects.filter(pending_approvals=1).exists()), agent.log
        assert {run.state for run in Run.objects.all()} <= set(PENDING)
        assert agent.stop() == 0
    assert command(pyz, state, "approve", "--yes").returncode == 0
    with agent_process(state, pyz) as agent:
        assert eventually(lambda: not Run.objects.filter(state__in=PENDING).exists()), agent.log
        assert agent.stop() == 0

    outcomes = {run.series.name: (run.state, run.reason) for run in Run.objects.select_related("series")}
    assert outcomes["disk-ncsa-node"][0] == State.PASSED, outcomes
    assert outcomes["stream-ncsa-node"] == (State.SKIPPED, REFUSED)
    assert f"delivered stream-ncsa-node: {REFUSED}" in command(pyz, state, "ledger").stdout
    assert set(network.proxy.requests) == {f"localhost:{network.tls_port}"}
    assert set(network.proxy.credentials) == {CREDENTIALS}
    page = re.sub(r"<[^>]+>|\s+", " ", browser.get("/reporters/ncsa/").content.decode())
    assert re.search(r"This site forbids probes +stream ", page)
    assert REFUSED in page.partition("Slots skipped by the site policy")[2]
    skipped = Run.objects.get(state=State.SKIPPED)
    assert REFUSED in browser.get(f"/runs/{skipped.pk}/").content.decode()
