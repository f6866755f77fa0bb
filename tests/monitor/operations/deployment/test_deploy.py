"""Deployment up to the first heartbeat, which never comes, over real SSH and against a real server."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.live_server_helper import LiveServer

from monitor.models import Deployment, EnrolmentCode, Reporter, ReporterKey, Resource, Site
from tests.monitor.operations.deployment.deployed_sites import DeployedSites, deployed_sites
from tests.monitor.operations.deployment.variants import MUTE, variant

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = "{}"


@pytest.fixture
def sites(transactional_db: None) -> Iterator[DeployedSites]:
    with deployed_sites("anl", "iu") as running:
        yield running


@pytest.fixture(scope="module")
def mute(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return variant(tmp_path_factory.mktemp("mute"), MUTE)


def failed(*arguments: str) -> tuple[str, str]:
    """Return the output and the error of a deployment that fails."""
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("reporter", *arguments, stdout=out)
    return out.getvalue(), str(caught.value)


def test_the_agent_is_enrolled_installed_and_started_and_its_log_is_shown_if_it_stays_silent(
    sites: DeployedSites, live_server: LiveServer, mute: Path
) -> None:
    arguments = ("deploy", "anl", "iu", f"--url={live_server.url}", f"--archive={mute}", "--wait=0.1")
    output, error = failed(*arguments)
    assert error == "deploy failed at 2 of 2: anl, iu"
    version = hashlib.sha256(mute.read_bytes()).hexdigest()
    for name in ("anl", "iu"):
        assert f"{name:<3}  wait for the first heartbeat\n" in output
        assert f"{name:<3}  FAILED: the agent has not reported within 0.1 s" in output
        key = ReporterKey.objects.active().get(reporter__name=name)
        identity = json.loads((sites.state(name) / "identity.json").read_text())
        assert identity["key_fingerprint"] == key.fingerprint
        assert identity["reporter"] == name
        assert (sites.state(name) / "versions" / f"{version}.pyz").read_bytes() == mute.read_bytes()
        assert len(sites.crontab(name).splitlines()) == 2
        assert len(sites.agents(name)) == 1
        assert Deployment.objects.get(reporter__name=name).archive_sha256 == version
    again, _ = failed(*arguments)
    assert "enrol" not in again
    assert "nobody hears this" in again
    assert EnrolmentCode.objects.count() == 2


def test_one_failing_site_does_not_stop_the_others(
    sites: DeployedSites, live_server: LiveServer, mute: Path
) -> None:
    shell = {"kind": "ssh", "host": "nowhere", "config_file": str(sites.config_file)}
    Resource.objects.filter(name="iu").update(shell=shell)
    output, error = failed(
        "deploy", "iu", "anl", f"--url={live_server.url}", f"--archive={mute}", "--wait=0.1"
    )
    assert "iu   FAILED: cannot log in: cannot connect to nowhere" in output
    assert len(sites.agents("anl")) == 1
    assert error == "deploy failed at 2 of 2: iu, anl"


def test_the_code_is_no_argument_of_a_process(
    sites: DeployedSites, live_server: LiveServer, mute: Path
) -> None:
    """The login shell of the site writes down its commands."""
    log = sites.home("anl") / "commands"
    sites.use_login_shell("anl", f'echo "$2" >> {log}\nexec /bin/sh "$@"')
    failed("deploy", "anl", f"--url={live_server.url}", f"--archive={mute}", "--wait=0.1")
    assert ReporterKey.objects.active().filter(reporter__name="anl").exists()
    assert f"enrol {live_server.url} - --force" in log.read_text()
    assert re.search("([A-Z2-7]{4}-?){5}", log.read_text()) is None


def test_a_site_without_a_recent_python_is_refused(
    sites: DeployedSites, live_server: LiveServer, mute: Path
) -> None:
    for minor in ("", *(f".{number}" for number in range(9, 15))):
        sites.install("anl", f"python3{minor}", "exit 1")
    output, _ = failed("deploy", "anl", f"--url={live_server.url}", f"--archive={mute}")
    assert "FAILED: the host has no Python 3.9 or newer; name one with --python" in output
    assert not sites.state("anl").exists()


def test_a_site_policy_is_copied_once_and_then_belongs_to_the_site(
    sites: DeployedSites, live_server: LiveServer, mute: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text(POLICY)
    arguments = ("deploy", "anl", f"--url={live_server.url}", f"--archive={mute}", f"--policy={policy}")
    failed(*arguments, "--wait=0.1")
    file = sites.state("anl") / "site-policy.json"
    assert file.read_text() == POLICY
    file.write_text(POLICY + "\n")
    output, _ = failed(*arguments, "--wait=0.1")
    assert "the site has a policy of its own, which stays" in output
    assert file.read_text() == POLICY + "\n"


def test_the_state_of_another_reporter_is_not_taken(
    sites: DeployedSites, live_server: LiveServer, mute: Path
) -> None:
    failed("deploy", "anl", f"--url={live_server.url}", f"--archive={mute}", "--wait=0.1")
    output, _ = failed("deploy", "anl", "--name=second", f"--url={live_server.url}", f"--archive={mute}")
    assert "belongs to the reporter anl of http://localhost" in output
    assert not ReporterKey.objects.filter(reporter__name="second").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no site 'nowhere'; defined are anl, bare, iu, many"),
        (["anl", "iu", "--host=login"], "--host: expected one site with this option, got 2"),
        (["anl", "--url=grid.example.org"], "set GRIDCAST_URL, or give --url; got 'grid.example.org'"),
        (["anl", "--policy=/no/such"], "--policy: cannot read /no/such: No such file or directory"),
        (["anl", "--archive=/no/such"], "--archive: cannot read /no/such: No such file or directory"),
        (["anl", "--name=celery"], "the reporter celery is a Celery worker; name another one with --name"),
        (["bare"], "the site bare has no resource with the shell ssh; name a host with --host"),
        (["many"], "the site many has several hosts, one, two: name one with --host"),
    ],
)
def test_what_cannot_be_deployed_is_refused_before_anything_is_done(
    db: None, arguments: list[str], message: str
) -> None:
    sites = {name: Site.objects.create(name=name) for name in ("anl", "iu", "bare", "many")}
    for name in ("one", "two"):
        shell = {"kind": "ssh", "host": name}
        Resource.objects.create(site=sites["many"], name=name, scratch="/s", shell=shell)
    Resource.objects.create(site=sites["anl"], name="anl", scratch="/s", shell={"kind": "ssh", "host": "a"})
    Reporter.objects.create(name="celery")
    _, error = failed("deploy", "--url=https://grid.example.org", *arguments)
    assert message in error


def test_names_or_all_are_expected(db: None) -> None:
    for arguments in ([], ["anl", "--all"]):
        assert failed("upgrade", *arguments)[1] == "expected names of deployed reporters, or --all"
    assert failed("remove", "anl")[1] == "no deployment of anl is known; deployed are none"
