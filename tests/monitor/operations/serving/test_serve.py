"""A grid of one's own: ``serve``, ``init`` and ``grid apply`` over two SSH servers of this test."""

from __future__ import annotations

import http.cookiejar
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from monitor.core.env import ROOT
from monitor.operations.embedded.clean import clean
from monitor.operations.serving.address import Address, listen_on_loopback
from monitor.operations.supervisor import ServiceStatus, read_status
from monitor.operations.supervisor.guard import descendants
from tests.reporters.ssh_sites import SshSites
from tests.waiting import eventually

UP_WITHIN_SECONDS = 300.0
RUN_WITHIN_SECONDS = 300.0  # a promise of the README


class Served:
    """``manage.py serve`` as a user starts it, with servers and a state of its own."""

    def __init__(self, directory: Path) -> None:
        self.var = directory / "var"
        with listen_on_loopback(19000 + os.getpid() % 1000) as listener:
            self.address = Address.of(listener)
        self._output = directory / "output"
        servers = {"DATABASE_URL", "REDIS_URL"}
        self._environment = {name: value for name, value in os.environ.items() if name not in servers}
        self._environment["GRIDCAST_VAR"] = str(self.var)

    def start(self) -> None:
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "serve", f"--bind={self.address}"],
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        assert eventually(self._is_up_or_over, within_seconds=UP_WITHIN_SECONDS), self.output()
        assert self.process.poll() is None, self.output()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(UP_WITHIN_SECONDS)

    def output(self) -> str:
        return self._output.read_text()

    def manage(self, *argv: str) -> str:
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *argv],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _is_up_or_over(self) -> bool:
        return "Ctrl-C stops everything" in self.output() or self.process.poll() is not None


class Browser:
    """Keeps cookies and signs in."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))

    def sign_in(self, name: str, password: str) -> None:
        self.page("login/")
        token = next(cookie.value for cookie in self._cookies if cookie.name == "csrftoken")
        form = {"login": name, "password": password, "csrfmiddlewaretoken": token}
        self._opener.open(f"{self._url}login/", urllib.parse.urlencode(form).encode(), timeout=60).close()

    def page(self, path: str) -> str:
        with self._opener.open(f"{self._url}{path}", timeout=60) as response:
            text: str = response.read().decode()
        return text


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    tmp_path.chmod(0o755)  # as root, PostgreSQL runs as another user and must reach its data
    serve = Served(tmp_path)
    serve.start()
    yield serve
    if serve.process.poll() is None:
        serve.process.kill()
        serve.process.wait()
    (serve.var / "purpose").unlink()  # `clean` refuses to remove the measurements of a real grid
    clean(serve.var)


@pytest.mark.grid
@pytest.mark.nightly
def test_it_serves_the_dashboard_to_its_first_administrator_until_ctrl_c(served: Served) -> None:
    browser = signed_in(served)
    step = re.search(r"^  (\S+) manage.py init", served.output(), re.MULTILINE)
    assert step is not None
    assert os.access(step[1], os.X_OK), "the steps can be copied to a terminal"
    assert "No series" in browser.page("")
    assert served.stop() == 0
    assert "The next `make serve` continues" in served.output()


@pytest.mark.grid
@pytest.mark.nightly
def test_a_grid_of_ones_own_has_its_first_gather_within_five_minutes(served: Served, tmp_path: Path) -> None:
    browser = signed_in(served)
    file = tmp_path / "grid.yaml"
    with SshSites("alpha", "beta") as sites:
        served.manage("init", f"--ssh-config={sites.config_file}", f"--output={file}")
        applied = served.manage("grid", "apply", str(file), "--run")
        assert "gather-alpha: its first run is requested" in applied
        row = eventually(lambda: passed_row(browser, "gather-alpha"), within_seconds=RUN_WITHIN_SECONDS)
        assert row, served.manage("ledger", "audit")
    assert served.stop() == 0


@pytest.mark.grid
@pytest.mark.nightly
def test_services_that_hang_are_restarted(served: Served) -> None:
    """The web server with all of its processes, a worker, the scheduler and the broker."""
    names = ("web", "control", "beat", "valkey")
    before = services(served)
    for name in names:
        pid = before[name].pid or 0
        for each in [*descendants(pid), pid]:
            os.kill(each, signal.SIGSTOP)
    browser = Browser(served.address.local_url)

    def are_up_again() -> bool:
        return all(services(served)[name].restarts and services(served)[name].state == "up" for name in names)

    assert eventually(are_up_again, within_seconds=1200), services(served)
    assert all("hung" in (services(served)[name].last_exit or "") for name in names)
    assert "Log in" in browser.page("login/")
    assert served.stop() == 0


def services(served: Served) -> Mapping[str, ServiceStatus]:
    status = read_status(served.var / "run" / "supervisor.json")
    assert status is not None
    return status.services


@pytest.mark.grid
@pytest.mark.nightly
def test_the_next_start_continues_with_the_same_accounts_and_runs(served: Served, tmp_path: Path) -> None:
    browser = signed_in(served)
    with SshSites("alpha") as sites:
        file = tmp_path / "grid.yaml"
        served.manage("init", f"--ssh-config={sites.config_file}", f"--output={file}")
        served.manage("grid", "apply", str(file), "--run")
        assert eventually(lambda: passed_row(browser, "login-alpha"), within_seconds=RUN_WITHIN_SECONDS)
    assert served.stop() == 0
    served.start()
    assert "first administrator" not in served.output()
    assert passed_row(browser, "login-alpha")  # the session of the browser is kept, too
    assert served.stop() == 0


def signed_in(served: Served) -> Browser:
    """Sign in with the account that the first start printed."""
    account = re.search(r"login +(\S+) / (\S+)", served.output())
    assert account, served.output()
    browser = Browser(served.address.local_url)
    browser.sign_in(account[1], account[2])
    return browser


def passed_row(browser: Browser, series: str) -> bool:
    """Whether the overview shows that the last run of *series* has passed."""
    rows = re.findall(r"<tr.*?</tr>", browser.page(""), re.DOTALL)
    return any(f">{series}<" in row and "passed" in row for row in rows)


def test_options_that_cannot_work_are_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GRIDCAST_HOSTS", raising=False)
    for options, message in (
        (["--bind=example.org:80"], "expected an IP address of this machine and a port"),
        (["--bind=0.0.0.0:0"], "expected an IP address"),
        (["--capacity=0"], "--capacity: expected a number from 1 to 500, got 0"),
    ):
        with pytest.raises(CommandError, match=message):
            call_command("serve", *options)


def test_an_address_of_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_HOSTS", "gridcast.example.org")
    monkeypatch.setenv("GRIDCAST_TLS", "1")
    with pytest.raises(CommandError, match=r"cannot listen on 192\.0\.2\.1:8000: Cannot assign requested"):
        call_command("serve", "--bind=192.0.2.1:8000")


def test_an_address_of_the_network_needs_the_names_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRIDCAST_HOSTS", raising=False)
    with pytest.raises(CommandError, match="set GRIDCAST_HOSTS to the host names"):
        call_command("serve", "--bind=0.0.0.0:19500")


def test_an_address_of_the_network_needs_a_decision_on_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRIDCAST_HOSTS", "localhost")
    monkeypatch.delenv("GRIDCAST_TLS", raising=False)
    with pytest.raises(CommandError, match="set GRIDCAST_TLS to 1 behind a TLS proxy, or to 0"):
        call_command("serve", "--bind=0.0.0.0:19500")
