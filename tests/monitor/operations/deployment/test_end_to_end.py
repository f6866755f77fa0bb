"""Reporters deployed to two real SSH servers by a real server: upgraded, broken, and removed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from monitor.models import ChainRecord, Deployment, ReporterKey, ReporterStatus
from monitor.operations.deployment.upgrade import upgrade
from reporters.remote import agent_process, archive
from reporters.report import to_json
from reporters.spool.spool import Spool
from tests.monitor.builders import circle_report
from tests.monitor.operations.deployment.deployed_sites import DeployedSites, deployed_sites
from tests.monitor.operations.deployment.variants import CRASHING, changed, variant
from tests.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sites(transactional_db: None) -> Iterator[DeployedSites]:
    with deployed_sites("anl", "iu") as running:
        yield running


def call(*arguments: str) -> str:
    out = io.StringIO()
    call_command("reporter", *arguments, stdout=out)
    return out.getvalue()


def fail(*arguments: str) -> str:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("reporter", *arguments, stdout=out)
    return out.getvalue()


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def versions() -> dict[str, str]:
    """Return the version that each reporter reported last."""
    return dict(ReporterStatus.objects.values_list("reporter__name", "archive_sha256"))


@pytest.mark.nightly  # by day the demo deploys to two sites and removes the reporters
def test_two_sites_from_the_deployment_to_the_removal(
    sites: DeployedSites, live_server: LiveServer, tmp_path: Path
) -> None:
    names = ("anl", "iu")
    before = {name: sites.tree(name) for name in names}
    began = timezone.now()
    call("deploy", *names, f"--url={live_server.url}")
    first = archive.digest(archive.build())
    assert versions() == dict.fromkeys(names, first)
    assert ReporterStatus.objects.filter(seen_at__gt=began).count() == 2
    agents = {name: sites.agents(name) for name in names}
    assert all(len(pids) == 1 and set(pids) <= set(sites.processes(name)) for name, pids in agents.items())
    assert "enrol" not in call("deploy", *names, f"--url={live_server.url}", "--wait=120")
    assert {name: sites.agents(name) for name in names} == agents

    new = changed(tmp_path / "new")
    call("upgrade", "--all", f"--archive={new}")
    assert versions() == dict.fromkeys(names, digest(new))
    assert "has version" in call("upgrade", "anl", f"--archive={new}")

    broken = variant(tmp_path / "broken", CRASHING)
    output = fail("upgrade", "anl", f"--archive={broken}", "--wait=3")
    assert "RuntimeError: the new version is broken" in output
    assert f"The earlier version {digest(new)[:12]} runs again." in output
    assert versions() == dict.fromkeys(names, digest(new))
    assert Deployment.objects.get(reporter__name="anl").archive_sha256 == digest(new)

    call("remove", "--all")
    assert {name: sites.tree(name) for name in names} == before
    assert eventually(lambda: [sites.processes(name) for name in names] == [[], []])
    assert not ReporterKey.objects.active().exists()
    assert not Deployment.objects.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("step", ["copy the new", "restart the service", "wait for a heartbeat"])
def test_an_upgrade_that_is_interrupted_is_completed_by_the_next(
    sites: DeployedSites, live_server: LiveServer, tmp_path: Path, step: str
) -> None:
    call("deploy", "anl", f"--url={live_server.url}")
    new = changed(tmp_path / "new")

    def interrupted_at(text: str) -> None:
        if text.startswith(step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upgrade(Deployment.objects.get(), new.read_bytes(), interrupted_at)
    assert eventually(lambda: len(sites.agents("anl")) == 1)
    call("upgrade", "anl", f"--archive={new}")
    assert versions() == {"anl": digest(new)}
    assert eventually(lambda: len(sites.agents("anl")) == 1)
    assert Deployment.objects.get().archive_sha256 == digest(new)
    call("remove", "anl")
    assert not sites.state("anl").exists()


def test_results_are_delivered_before_a_reporter_is_removed_and_kept_if_they_cannot_be(
    sites: DeployedSites, live_server: LiveServer
) -> None:
    call("deploy", "anl", f"--url={live_server.url}")
    state = sites.state("anl")
    (sites.home("anl") / ".crontab").unlink()
    agent_process.stop(state)
    with contextlib.closing(Spool(state / "spool", "anl")) as spool:
        spool.append(to_json(circle_report(timezone.now())))
    identity = json.loads((state / "identity.json").read_text())
    (state / "identity.json").write_text(json.dumps({**identity, "url": "http://127.0.0.1:9"}))
    output = fail("remove", "anl", "--deliver=0.1")
    assert "has 2 records that are not delivered" in output
    assert ReporterKey.objects.active().exists()
    assert state.exists()
    (state / "identity.json").write_text(json.dumps(identity))
    call("remove", "anl")
    assert not state.exists()
    assert ChainRecord.objects.filter(chain__reporter__name="anl").count() == 2


def test_an_unreachable_site_is_only_revoked(sites: DeployedSites, live_server: LiveServer) -> None:
    call("deploy", "anl", f"--url={live_server.url}")
    assert "its files stay at the site" in call("remove", "anl", "--unreachable")
    assert not ReporterKey.objects.active().exists()
    assert not Deployment.objects.exists()
    assert sites.state("anl").exists()
