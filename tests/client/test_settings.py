"""The URL and the token of a client, and where they come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gridcast_client import Client, InvalidInput
from tests.client.in_process import URL, Answers, document

RANKING = document('{"quantile": 0.9, "at": "2026-03-01T12:00:00Z", "ranked": [], "unranked": []}')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("gcast_abc\n")
    file.chmod(0o600)
    return file


def authorization(client: Client, answers: Answers) -> str:
    client.rank(["a"])
    return answers.requests[-1].headers.get("Authorization", "")


def test_a_token_comes_from_argument_file_or_environment_in_this_order(file: Path) -> None:
    answers = Answers(RANKING)
    environ = {"GRIDCAST_URL": URL, "GRIDCAST_TOKEN": "from-environment", "GRIDCAST_TOKEN_FILE": "/missing"}
    given = [
        ({"token": "argument", "token_file": "/missing"}, environ, "Bearer argument"),
        ({"token_file": file}, environ, "Bearer gcast_abc"),
        ({}, environ, "Bearer from-environment"),
        ({}, {"GRIDCAST_URL": URL, "GRIDCAST_TOKEN_FILE": str(file)}, "Bearer gcast_abc"),
        ({}, {"GRIDCAST_URL": URL}, ""),
    ]
    for arguments, variables, expected in given:
        client = Client(transport=answers, environ=variables, **arguments)  # type: ignore[arg-type]
        assert authorization(client, answers) == expected


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o611])
def test_a_token_file_that_others_may_open_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    with pytest.raises(InvalidInput, match=r"token is open to other users \(-rw-.*\): run chmod go= on it"):
        Client(URL, token_file=file, environ={})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_another_user_is_refused(file: Path) -> None:
    os.chown(file, 65534, -1)
    with pytest.raises(InvalidInput, match="belongs to the user 65534: it must be yours or root's"):
        Client(URL, token_file=file, environ={})


def test_what_is_no_file_with_a_token_is_refused(tmp_path: Path, file: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, said in [
        ("missing", "No such file"),
        ("pipe", "not a regular file"),
        (".", "not a regular file"),
    ]:
        with pytest.raises(InvalidInput, match=said):
            Client(URL, token_file=tmp_path / name, environ={})
    for content in ("two words", "a\nb", "ü"):
        file.write_text(content)
        with pytest.raises(
            InvalidInput, match=r"the token in .* is none: expected printable ASCII"
        ) as raised:
            Client(URL, token_file=file, environ={})
        assert content not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "grid.example.org",
        "ftp://grid.example.org",
        "https://",
        "https://h:port",
        "https://h:99999",
        "https://h\r\n",
        f"https://{'x' * 64}.org",
    ],
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected a URL such as https://grid.example.org"):
        Client(url, environ={})


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(InvalidInput) as raised:
        Client("https://ada:sesame@grid.example.org", environ={})
    assert "sesame" not in str(raised.value)


def test_a_token_goes_without_tls_to_this_host_only() -> None:
    for host in ("localhost", "127.0.0.1", "127.1.2.3", "[::1]"):
        Client(f"http://{host}:8000", "secret", environ={})
    for host in ("grid.example.org", "127.0.0.1.example.org", "localhost.example.org"):
        with pytest.raises(InvalidInput, match="without TLS anyone on the way could read the token"):
            Client(f"http://{host}", "secret", environ={})
    Client("http://grid.example.org", "secret", plain_http=True, environ={})


@pytest.mark.parametrize("options", [{"timeout_seconds": 0}, {"tries": 0}, {"user_agent": "a\r\nb"}])
def test_impossible_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        Client(URL, environ={}, **options)  # type: ignore[arg-type]


def test_a_client_without_spool_has_nothing_to_deliver() -> None:
    with pytest.raises(InvalidInput, match="this needs a spool: give a directory, or set GRIDCAST_SPOOL"):
        Client(URL, environ={}).deliver()
