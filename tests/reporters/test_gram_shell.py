"""The gram shell against a real gatekeeper: failures before, during and after a job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware import gram
from probes.base import ProbeFailed
from reporters.base import CannotConnect, ConnectionLost, CredentialUnfit
from reporters.shells.gram import RemoteExit, Shell, parse_exit, parse_failure
from tests.reporters.needs import needs
from tests.reporters.run_security import copied_proxy, copied_security

LABEL = "circle-main@2026-03-01T12:07:00.000000Z"

Shells = Callable[..., Shell]


@pytest.fixture(scope="module")
def site() -> Iterator[gram.Gatekeeper]:
    needs(*gram.PROGRAMS)
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        security = copied_security(Path(directory) / "security")
        with gram.gatekeeper(security, "127.0.0.41", Path(directory) / "gram") as running:
            yield running


@pytest.fixture(scope="module")
def shell_of(site: gram.Gatekeeper) -> Shells:
    usual = site.shell(copied_proxy(site.security))

    def make(**options: Any) -> Shell:
        given = {name: value for name, value in {**usual, **options}.items() if name != "kind"}
        return Shell("ce", LABEL, **given)

    return make


def failure(shell: Shell) -> ProbeFailed:
    with pytest.raises(ProbeFailed) as raised:
        shell.connect(timeout_seconds=60)
    return raised.value


def test_the_credentials_are_checked_before_the_login(shell_of: Shells) -> None:
    (proxy,) = shell_of().credentials()
    proxy.check(needed_seconds=3600)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("/jobmanager-fork", "/jobmanager-none"), "the gatekeeper failed to find the requested service"),
        (
            ("CN=gatekeeper", "CN=other"),
            "it is /O=Grid/OU=gridcast/CN=gatekeeper, not /O=Grid/OU=gridcast/CN=other",
        ),
        (("127.0.0.41", "nowhere.invalid"), "the connection to the server failed (check host and port)"),
    ],
)
def test_a_contact_that_does_not_answer_is_an_error_with_the_reason(
    shell_of: Shells, site: gram.Gatekeeper, change: tuple[str, str], why: str
) -> None:
    contact = site.contact.replace(*change)
    error = failure(shell_of(contact=contact))
    assert isinstance(error, CannotConnect)
    assert error.message == f"cannot connect to {contact.partition(':/')[0]}: {why}"
    assert error.resource == "ce"


def test_a_gatekeeper_that_is_down_is_reported(shell_of: Shells) -> None:
    error = failure(shell_of(contact="127.0.0.41:22119"))
    assert isinstance(error, CannotConnect)
    assert error.message == "cannot connect to 127.0.0.41:22119: connecting to the job manager failed"


def test_a_missing_or_expired_proxy_is_reported(shell_of: Shells, site: gram.Gatekeeper) -> None:
    missing = failure(shell_of(proxy_file="/no/such/proxy"))
    assert isinstance(missing, CredentialUnfit)
    assert missing.message == "no valid proxy: File does not exist: /no/such/proxy is not a valid file"
    file = str(site.security.expired_proxy(hours=30))
    expired = failure(shell_of(proxy_file=file))
    assert isinstance(expired, CredentialUnfit)
    assert expired.message == f"proxy {file} expired 30 h ago"


def test_an_unknown_authority_is_reported(shell_of: Shells, tmp_path: Path) -> None:
    error = failure(shell_of(ca_directory=str(tmp_path)))
    assert isinstance(error, CannotConnect)
    assert "its certificate is not trusted: Can't get the local trusted CA certificate" in error.message


def test_a_user_without_an_account_is_reported(shell_of: Shells, site: gram.Gatekeeper) -> None:
    gridmap = site.security.gridmap
    usual = gridmap.read_text()
    gridmap.write_text("\n")
    try:
        error = failure(shell_of())
    finally:
        gridmap.write_text(usual)
    assert isinstance(error, CannotConnect)
    assert error.message.endswith("/jobmanager-fork: authentication with the remote server failed")


def test_a_client_that_is_not_installed_is_named(shell_of: Shells, tmp_path: Path) -> None:
    shell = shell_of(path=str(tmp_path))
    assert failure(shell).message.endswith(": cannot run globusrun: No such file or directory")
    with pytest.raises(ConnectionLost, match=r"true at ce was lost: .*globusrun: not found"):
        shell.run(["true"], timeout_seconds=60)


def test_jobs_run_in_the_configured_directory_and_a_lost_job_is_reported(
    shell_of: Shells, tmp_path: Path
) -> None:
    """All at once: each takes seconds."""
    shell = shell_of(directory=str(tmp_path))
    kill_the_job = "kill -KILL $(cut -d ' ' -f 4 < /proc/$PPID/stat); sleep 0.1"
    with ThreadPoolExecutor(4) as pool:
        where = pool.submit(shell.run, ["pwd"], timeout_seconds=60)
        long = pool.submit(shell.run, ["printf", "%s", "x" * 50_000], timeout_seconds=60)
        lost = pool.submit(shell.run, ["sh", "-c", kill_the_job], timeout_seconds=60)
        nowhere = pool.submit(shell_of(directory="/no/such").run, ["pwd"], timeout_seconds=60)
    assert where.result().stdout == f"{tmp_path}\n"
    assert long.result().stdout == "x" * 50_000
    with pytest.raises(ConnectionLost, match=r"^sh at ce was lost: the job did not report its end$"):
        lost.result()
    with pytest.raises(ConnectionLost, match=r"pwd at ce was lost: .*unable to set default to the"):
        nowhere.result()


def test_the_exit_of_a_program_is_parsed_after_its_stderr() -> None:
    stderr = "no line end\ngridcast-1 3 100.50 101.25\nGRAM says more\n"
    assert parse_exit(stderr, "gridcast-1") == RemoteExit("no line end", 3, 0.75)
    assert parse_exit(stderr, "gridcast-2") is None
    assert parse_exit("", "gridcast-1") is None


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (
            "GRAM Job failed because the executable does not exist (error code 5)\n",
            "the executable does not exist",
        ),
        (
            "GRAM Job failed because the job manager could not stage in stdin from https://h:1/x "
            "(error code 44)\nDetails: \n",
            "the job manager could not stage in stdin from https://h:1/x",
        ),
        (
            "\nGRAM Authentication test failure: connecting to the job manager failed.  Possible reasons: "
            "job terminated, invalid job contact, network problems, ...\n",
            "connecting to the job manager failed",
        ),
        ("sh: 1: globusrun: not found\n", "sh: 1: globusrun: not found"),
    ],
)
def test_a_refusal_by_gram_is_explained_in_one_line(output: str, why: str) -> None:
    assert parse_failure(output) == why
