"""Checks of an SSH key before the login, with the real ssh, ssh-keygen and agent."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.testbed.middleware.openssh import SshClients, make_key, public
from reporters.base import CredentialUnfit
from reporters.credentials.lifetime import Lifetime, format_duration
from reporters.credentials.ssh_configuration import parse_configuration
from reporters.credentials.ssh_files import parse_key_file, parse_validity
from reporters.shells.ssh import Shell

DATA = Path(__file__).parent / "data"
HOUR = 3600.0


@pytest.fixture(autouse=True)
def nothing_but_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the agent and the Kerberos ticket of the user that runs the tests."""
    for name in ("SSH_AUTH_SOCK", "KRB5CCNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> SshClients:
    return SshClients(tmp_path_factory.mktemp("clients"))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return make_key(tmp_path / "key")


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    return make_key(tmp_path / "locked", "open sesame")


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """An agent's socket."""
    path = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert str(path).encode() in running.stdout.readline()
        yield path
        running.terminate()


def credential(config_file: Path | None = None, **options: Any) -> Any:
    shell = Shell("ncsa", "l@s", host="ncsa", config_file=str(config_file or "/dev/null"), **options)
    (only,) = shell.credentials()
    return only


def complaint(key_credential: Any, needed_seconds: float = 60.0) -> str:
    with pytest.raises(CredentialUnfit) as raised:
        key_credential.check(needed_seconds=needed_seconds)
    assert raised.value.resource == "ncsa"
    return raised.value.message


def configured(tmp_path: Path, *lines: str) -> Any:
    file = tmp_path / "ssh_config"
    file.write_text("\n".join(["Host ncsa", *lines, ""]))
    return credential(file)


def test_a_usable_key_is_accepted(key: Path) -> None:
    credential(identity_file=str(key)).check(needed_seconds=HOUR)


def test_a_configured_key_must_exist(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert complaint(credential(identity_file=str(missing))) == f"no SSH key: {missing} does not exist"
    key_credential = configured(
        tmp_path, f"IdentityFile {tmp_path}/%r-missing", "IdentitiesOnly yes", "User prober"
    )
    assert complaint(key_credential) == f"no SSH key: {tmp_path}/prober-missing does not exist"


def test_one_key_of_several_that_are_configured_is_enough(tmp_path: Path, key: Path) -> None:
    lines = (f"IdentityFile {tmp_path}/missing", f"IdentityFile {key}", "IdentitiesOnly yes")
    configured(tmp_path, *lines).check(needed_seconds=HOUR)


def test_a_default_key_may_be_missing(tmp_path: Path) -> None:
    configured(tmp_path, f"IdentityFile {tmp_path}/missing").check(needed_seconds=HOUR)


def test_a_key_that_others_may_read_is_not_used_by_ssh(key: Path) -> None:
    key.chmod(0o644)
    message = complaint(credential(identity_file=str(key)))
    assert message == f"SSH key {key} is open to others (mode 0644): ssh does not use it"


def test_a_key_with_a_passphrase_needs_an_agent(tmp_path: Path, locked: Path) -> None:
    expected = f"SSH key {locked} needs a passphrase and no agent has it"
    assert complaint(credential(identity_file=str(locked))) == expected
    assert complaint(configured(tmp_path, f"IdentityFile {locked}")) == expected


@pytest.mark.parametrize("form", ["PEM", "PKCS8"])
def test_a_passphrase_is_detected_in_older_key_formats(tmp_path: Path, form: str) -> None:
    for passphrase in ("", "open sesame"):
        file = tmp_path / f"key{len(passphrase)}"
        argv = ["ssh-keygen", "-q", "-t", "ecdsa", "-m", form, "-N", passphrase, "-f", str(file)]
        subprocess.run(argv, check=True)
    credential(identity_file=str(tmp_path / "key0")).check(needed_seconds=HOUR)
    assert "needs a passphrase" in complaint(credential(identity_file=str(tmp_path / "key11")))


def test_an_agent_with_the_key_suffices(
    tmp_path: Path, key: Path, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    subprocess.run(["ssh-add", "-q", str(key)], check=True)
    hidden = tmp_path / "hidden"  # by its public half alone
    public(hidden).write_bytes(public(key).read_bytes())
    credential(identity_file=str(hidden)).check(needed_seconds=HOUR)
    credential(identity_file=str(public(key))).check(needed_seconds=HOUR)


def test_an_agent_with_another_key_does_not_suffice_for_a_configured_key(
    key: Path, locked: Path, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    subprocess.run(["ssh-add", "-q", str(key)], check=True)
    assert "no agent has it" in complaint(credential(identity_file=str(locked)))
    message = complaint(credential(identity_file=str(public(locked))))
    assert message.endswith("locked.pub is a public key and no agent has its private half")
    configured(tmp_path, f"IdentityFile {locked}").check(needed_seconds=HOUR)  # the agent's may do
    assert "no agent has it" in complaint(
        configured(tmp_path, f"IdentityFile {locked}", "IdentityAgent none")
    )


def test_an_agent_that_is_gone_has_no_keys(locked: Path, tmp_path: Path) -> None:
    key_credential = configured(
        tmp_path, f"IdentityFile {locked}", f"IdentityAgent {tmp_path}/gone", "IdentitiesOnly yes"
    )
    assert "no agent has it" in complaint(key_credential)


def test_a_file_without_a_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("hello\n")
    assert complaint(credential(identity_file=str(file))) == f"SSH key {file} cannot be used: it holds no key"


@pytest.mark.parametrize("line", ["PubkeyAuthentication no", "PKCS11Provider /usr/lib/token.so"])
def test_keys_are_not_checked_if_another_login_method_is_configured(tmp_path: Path, line: str) -> None:
    lines = (f"IdentityFile {tmp_path}/missing", "IdentitiesOnly yes", line)
    configured(tmp_path, *lines).check(needed_seconds=HOUR)


def test_an_invalid_ssh_configuration_is_left_to_the_login(tmp_path: Path) -> None:
    configured(tmp_path, "NoSuchOption yes").check(needed_seconds=HOUR)


def test_a_certificate_must_exist_and_outlast_the_run(clients: SshClients, key: Path, tmp_path: Path) -> None:
    certificate = clients.certify(key, valid="-5m:+5m")
    key_credential = credential(identity_file=str(key))
    key_credential.check(needed_seconds=60.0)
    assert re.fullmatch(
        rf"SSH certificate {certificate} expires in [45] min, the run needs about 9 min",
        complaint(key_credential, 540.0),
    )
    lines = (f"IdentityFile {key}", "IdentitiesOnly yes", f"CertificateFile {tmp_path}/missing")
    certificate.unlink()
    assert complaint(configured(tmp_path, *lines)) == f"no SSH certificate: {tmp_path}/missing does not exist"


@pytest.mark.parametrize(
    ("valid", "message"),
    [
        ("20200101:20200102", r"SSH certificate .*-cert.pub expired \d+ d ago"),
        ("+3h:+4h", r"SSH certificate .*-cert.pub is not valid yet: valid in 3 h"),
    ],
)
def test_a_certificate_must_be_valid_now(clients: SshClients, key: Path, valid: str, message: str) -> None:
    clients.certify(key, valid=valid)
    assert re.fullmatch(message, complaint(credential(identity_file=str(key))))


def test_one_valid_certificate_of_several_suffices(clients: SshClients, key: Path, tmp_path: Path) -> None:
    old = clients.certify(key, valid="20200101:20200102").rename(tmp_path / "old-cert.pub")
    clients.certify(key)
    key_credential = configured(
        tmp_path, f"IdentityFile {key}", "IdentitiesOnly yes", f"CertificateFile {old}"
    )
    key_credential.check(needed_seconds=60.0)


@pytest.mark.parametrize(
    ("shown", "begins", "ends"),
    [
        ("from 2026-03-01T12:00:00 to 2026-03-01T13:00:00", 1772366400.0, 1772370000.0),
        ("forever", float("-inf"), float("inf")),
        ("after 2026-03-01T12:00:00", 1772366400.0, float("inf")),
        ("before 2026-03-01T13:00:00", float("-inf"), 1772370000.0),
    ],
)
def test_all_forms_of_validity_are_parsed(shown: str, begins: float, ends: float) -> None:
    text = (DATA / "ssh-keygen-L.txt").read_text()
    assert parse_validity(re.sub("Valid: .*", f"Valid: {shown}", text)) == [Lifetime(begins, ends)]


def test_tokens_in_paths_are_replaced_and_paths_with_unknown_ones_ignored() -> None:
    config = parse_configuration((DATA / "ssh-G.txt").read_text())
    assert config.identity_files == ["~/.ssh/id_%h", "${HOME}/x"]
    assert str(config.path("/keys/%h-%n-%r-%p-%%")) == "/keys/foo.example.org-foo-root-22-%"
    assert config.path("/keys/%C") is None
    assert config.path("/keys/${NO_SUCH_VARIABLE}") is None


def test_a_truncated_private_key_is_no_key() -> None:
    assert parse_key_file(b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END") is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (90, "90 s"), (240, "4 min"), (7000, "117 min"), (129600, "36 h")]
)
def test_durations_are_formatted_in_the_largest_unit_of_which_they_have_two(
    seconds: float, words: str
) -> None:
    assert format_duration(seconds) == words
