"""Bearer tokens: their period of validity and all reasons for a refusal."""

from __future__ import annotations

import base64
import json
import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reporters.base import CredentialUnfit
from reporters.credentials.lifetime import Lifetime
from reporters.credentials.token import BearerToken, parse_lifetime
from tests.reporters.places import private

MACAROON = (Path(__file__).parent / "data" / "macaroon.txt").read_text().strip()
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC).timestamp()


def jwt(**claims: Any) -> str:
    parts = ({"alg": "ES256"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


def macaroon(*caveats: str, alphabet: str = "-_") -> str:
    """The packets of libmacaroons, version 1."""
    values = ["location one", "identifier x", *(f"cid {caveat}" for caveat in caveats), "signature \xff\xfe"]
    packets = b"".join(f"{len(value) + 5:04x}".encode() + value.encode("latin-1") + b"\n" for value in values)
    return base64.b64encode(packets, alphabet.encode()).decode().rstrip("=")


def unfit(file: Path, *, needed_seconds: float = 0.0) -> str:
    """Why the token in *file* is not fit."""
    with pytest.raises(CredentialUnfit) as raised:
        BearerToken(str(file), now=lambda: NOW).check(needed_seconds=needed_seconds)
    return raised.value.message


def test_a_valid_token_is_read_without_its_newline(tmp_path: Path) -> None:
    token = jwt(nbf=NOW - 1, exp=NOW + 600)
    credential = BearerToken(str(private(tmp_path / "token", f"{token}\n")), now=lambda: NOW)
    credential.check(needed_seconds=599)
    assert credential.read() == token


def test_an_opaque_token_is_accepted(tmp_path: Path) -> None:
    BearerToken(str(private(tmp_path / "token", "opaque"))).check(needed_seconds=1e9)


def test_a_token_that_expires_too_soon_is_refused_with_both_durations(tmp_path: Path) -> None:
    file = private(tmp_path / "token", jwt(exp=NOW + 240))
    assert unfit(file, needed_seconds=540) == f"token {file} expires in 4 min, the run needs about 9 min"


@pytest.mark.parametrize("token", [jwt(exp=NOW - 10_800), macaroon("before:2026-03-01T09:00:00Z")])
def test_an_expired_token_is_refused_with_its_age(tmp_path: Path, token: str) -> None:
    file = private(tmp_path / "token", token)
    assert unfit(file) == f"token {file} expired 3 h ago"


def test_a_token_that_is_not_valid_yet_is_refused(tmp_path: Path) -> None:
    file = private(tmp_path / "token", jwt(nbf=NOW + 300))
    assert unfit(file) == f"token {file} is not valid yet: valid in 5 min"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("two words", "holds no token"),
        ("x\r\nSet-Cookie: y", "holds no token"),
        ("ä", "holds no token"),
        ("x" * 70_000, "holds no token"),
    ],
)
def test_a_file_without_a_token_is_refused(tmp_path: Path, text: str, why: str) -> None:
    file = private(tmp_path / "token", text)
    assert unfit(file) == f"no token: {file}: {why}"


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    assert unfit(tmp_path / "none") == f"no token: {tmp_path}/none: No such file or directory"
    assert unfit(tmp_path) == f"no token: {tmp_path}: Is a directory"


def test_a_token_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = private(tmp_path / "token", "x")
    file.chmod(0o640)
    assert unfit(file) == f"no token: {file}: accessible to others (mode 640, must be 600)"


def test_a_token_of_another_user_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("giving a file away needs root")
    file = private(tmp_path / "token", "x")
    os.chown(file, 12345, 12345)
    message = unfit(file)
    assert message.startswith(
        f"no token: {file}: {file} has mode -rw-------, owner 12345, group 12345: its owner"
    )


def test_a_macaroon_expires_with_its_first_caveat() -> None:
    token = macaroon("before:2026-03-01T13:00:00Z", "activity:LIST", "before:2026-03-01T12:30:00Z")
    assert parse_lifetime(token) == Lifetime(ends=NOW + 1800)
    assert parse_lifetime(macaroon("before:2026-03-01T12:30:00+00:00", alphabet="+/")) == Lifetime(
        ends=NOW + 1800
    )


def test_a_macaroon_of_xrootd_is_read() -> None:
    assert parse_lifetime(MACAROON) == Lifetime(
        ends=datetime(2026, 11, 21, 14, 19, 23, tzinfo=UTC).timestamp()
    )


@pytest.mark.parametrize(
    "token",
    [
        macaroon("before:tomorrow"),
        macaroon("before:2026-03-01T12:30:00"),  # by whose clock?
        macaroon()[:-9],
        base64.b64encode(b"ffffcid before:2026-03-01T12:30:00Z\n").decode(),
        base64.b64encode(b"0000" * 10).decode(),
        jwt(exp="soon", nbf=True),
        jwt(exp=math.nan, nbf=1e300),
        jwt(exp=10**400),
        "a.b.c",
        f"a.{base64.b64encode(b'[' * 60_000).decode()}.c",
        f"a.{base64.b64encode(b'[]').decode()}.c",
        "...",
        "ä",
    ],
)
def test_a_token_with_an_unreadable_end_has_none(token: str) -> None:
    assert parse_lifetime(token) == Lifetime()
