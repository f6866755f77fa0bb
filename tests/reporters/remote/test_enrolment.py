"""Enrolment over a real HTTPS server that signs as gridcast does."""

from __future__ import annotations

import json
import platform
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.runs.fleet import signatures
from monitor.runs.fleet.enrolment import server_mark
from monitor.testbed.middleware.pki import Authority
from reporters.remote import identity, signing
from reporters.remote.enrolment import EnrolmentOptions, enrol, normalise_code
from reporters.remote.errors import UsageFault
from reporters.remote.main import main
from reporters.remote.server import ServerClient, ServerUnavailable, parse_url
from reporters.remote.state_directory import ASSIGNMENT, StateDirectory, StateError
from tests.reporters.needs import needs
from tests.reporters.scripted_https import Connection, Request, ScriptedServer, scripted_server

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    needs("openssl", "ssh-keygen")
    return Authority.create(tmp_path_factory.mktemp("authority") / "ca")


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory.create(tmp_path / "state")


def code(random: str = "ABCDEFGHIJ23") -> str:
    return f"{random}{server_mark()}"


def honest(change: Change = lambda _: None, status: int = 200) -> Callable[[Connection, Request], None]:
    """Answer as the server does, after checking the agent's signature; *change* spoils the answer."""

    def answer(connection: Connection, request: Request) -> None:
        asked = json.loads(request.body)
        key = signatures.parse_key(asked["method"], asked["public_key"])
        purpose, signed = signatures.Purpose.ENROLMENT, asked["code"].encode()
        signatures.verify(key.method, key.text, purpose, signed, asked["signature"])
        document = {
            "reporter": "ncsa",
            "server_key": signatures.server_public_key(asked["method"]),
            "server_fingerprint": signatures.server_fingerprint(),
            "exchange_seconds": 60,
        }
        change(document)
        connection.answer(status, json.dumps(document).encode())

    return answer


def client(server: ScriptedServer, authority: Authority) -> ServerClient:
    return ServerClient(
        parse_url(f"https://localhost:{server.port}"), ca_file=str(authority.identity.certificate)
    )


@pytest.mark.parametrize("method", signing.names())
def test_the_identity_is_kept_with_a_private_key(
    authority: Authority, state: StateDirectory, method: str
) -> None:
    with scripted_server(authority, honest()) as server:
        enrolled = enrol(client(server, authority), state, code(), EnrolmentOptions(method))
    assert identity.load(state) == enrolled
    assert enrolled.reporter == "ncsa"
    assert enrolled.server_fingerprint == signatures.server_fingerprint()
    assert stat.S_IMODE((state.path / enrolled.key_file).stat().st_mode) == 0o600
    assert b"PRIVATE" not in server.requests[0].body


@pytest.mark.parametrize("level", ["full", "redacted", "minimal"])
def test_the_name_of_the_host_is_told_as_the_policy_says(
    authority: Authority, state: StateDirectory, level: str
) -> None:
    policy = state.path / "site-policy.json"
    policy.write_text(json.dumps({"disclosure": level}))
    policy.chmod(0o600)
    with scripted_server(authority, honest()) as server:
        enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))
    told = json.loads(server.requests[0].body)["hostname"]
    assert told == platform.node() if level == "full" else told.startswith("host-")


def test_a_key_that_the_code_does_not_name_is_refused_and_nothing_is_kept(
    authority: Authority, state: StateDirectory
) -> None:
    """A proxy that opens TLS could put its own key in place of the server's."""
    wrong = code()[:-1] + ("A" if code()[-1] != "A" else "B")
    with (
        scripted_server(authority, honest()) as server,
        pytest.raises(UsageFault, match="the server's key is not the one that the code names"),
    ):
        enrol(client(server, authority), state, wrong, EnrolmentOptions("openssl"))
    with pytest.raises(StateError, match="is not enrolled"):
        identity.load(state)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("server_key", "none"),
        ("server_key", 1),
        ("reporter", ""),
        ("exchange_seconds", 0),
        ("reporter", None),
    ],
)
def test_a_malformed_answer_is_refused(
    authority: Authority, state: StateDirectory, field: str, value: Any
) -> None:
    with (
        scripted_server(authority, honest(lambda answer: answer.update({field: value}))) as server,
        pytest.raises(UsageFault, match="the server"),
    ):
        enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))


def test_a_repetition_with_the_code_sends_the_same_key(authority: Authority, state: StateDirectory) -> None:
    with scripted_server(authority, lambda connection, _: connection.send(b"")) as server:
        for _ in range(2):
            with pytest.raises(ServerUnavailable):
                enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))
        server.script = honest()
        enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))
        keys = {json.loads(request.body)["public_key"] for request in server.requests}
        assert len(server.requests) == 3
    assert len(keys) == 1


def test_a_half_written_key_is_made_again(authority: Authority, state: StateDirectory) -> None:
    with scripted_server(authority, honest()) as server:
        first = enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))
        (state.path / first.key_file).write_text("-----BEGIN EC PRIVATE KEY-----")
        again = enrol(client(server, authority), state, code(), EnrolmentOptions("openssl", is_forced=True))
    assert again.key_fingerprint != first.key_fingerprint


def test_a_second_enrolment_needs_force_and_leaves_one_key(
    authority: Authority, state: StateDirectory
) -> None:
    with scripted_server(authority, honest()) as server:
        first = enrol(client(server, authority), state, code(), EnrolmentOptions("openssl"))
        state.write(ASSIGNMENT, b"{}")
        with pytest.raises(UsageFault, match=f"{state.path} is enrolled as ncsa at {first.url}; see --force"):
            enrol(client(server, authority), state, code("A" * 12), EnrolmentOptions("ssh"))
        second = enrol(
            client(server, authority), state, code("A" * 12), EnrolmentOptions("ssh", is_forced=True)
        )
    assert [file.name for file in state.path.glob("key-*")] == [second.key_file]
    assert second.key_fingerprint != first.key_fingerprint
    assert state.read(ASSIGNMENT) is not None, "the server is the same"


@pytest.mark.parametrize("text", ["", "ABCD", "A" * 19 + "1", "A" * 21, "A" * 19 + "Ä"])
def test_what_is_no_code_is_refused_before_anything_is_sent(text: str) -> None:
    with pytest.raises(UsageFault, match="expected a code of 20 letters and digits from 2 to 7"):
        normalise_code(text)


def test_hyphens_case_and_spaces_do_not_matter() -> None:
    assert normalise_code(" abcd-efgh-jklm-npqr-stuv\n") == "ABCDEFGHJKLMNPQRSTUV"


def test_the_command_names_the_reporter_and_the_next_command(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = f"--ca-file={authority.identity.certificate}"
    with scripted_server(authority, honest()) as server:
        argv = ["enrol", f"https://localhost:{server.port}", code(), trust, f"--state={tmp_path / 's'}"]
        assert main(argv) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"enrolled as ncsa at https://localhost:{server.port}\n")
    assert "then `run` starts the reporter" in printed


def test_the_command_reports_a_refused_code(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = b'{"code": "invalid_code", "detail": "unknown, used or expired"}'
    trust = f"--ca-file={authority.identity.certificate}"
    with scripted_server(authority, lambda connection, _: connection.answer(403, problem)) as server:
        url = f"https://localhost:{server.port}"
        assert main(["enrol", url, code(), trust, f"--state={tmp_path / 's'}"]) == 2
    assert f"{url}/api/v1/reporters/enrol: 403: unknown, used or expired" in capsys.readouterr().err
