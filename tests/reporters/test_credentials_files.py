"""Reading a file of credentials never blocks and is bounded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reporters.base import Credential, CredentialUnfit
from reporters.credentials.files import LONGEST_BYTES, exists, is_directory, read
from reporters.credentials.proxy import ProxyCertificate
from reporters.credentials.ssh_key import SshKey
from reporters.credentials.token import BearerToken

KINDS: dict[str, Callable[[Path], Credential]] = {
    "proxy": lambda file: ProxyCertificate(str(file), str(file.parent)),
    "token": lambda file: BearerToken(str(file)),
    "key": lambda file: SshKey("ncsa", ["-F", "none", "--", "ncsa"], identity_file=str(file)),
}


@pytest.fixture(params=KINDS)
def refused(request: pytest.FixtureRequest) -> Callable[[Path], str]:
    """Return a function that gives the reason why a file is refused."""

    def refused(file: Path) -> str:
        with pytest.raises(CredentialUnfit) as raised:
            KINDS[request.param](file).check(needed_seconds=0.0)
        return raised.value.message

    return refused


def test_reading_a_pipe_does_not_block(tmp_path: Path, refused: Callable[[Path], str]) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert refused(tmp_path / "pipe").endswith(": Not a regular file")


def test_a_device_is_not_read(refused: Callable[[Path], str]) -> None:
    assert refused(Path("/dev/zero")).endswith(": Not a regular file")


def test_a_directory_is_refused_as_a_directory(tmp_path: Path, refused: Callable[[Path], str]) -> None:
    assert refused(tmp_path).endswith(": Is a directory")


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path, refused: Callable[[Path], str]) -> None:
    file = tmp_path / "large"
    file.touch(mode=0o600)
    os.truncate(file, 2**40)
    assert str(file) in refused(file)
    assert len(read(file)[1]) == LONGEST_BYTES


def test_a_path_without_permission_does_not_exist(tmp_path: Path) -> None:
    assert exists(tmp_path)
    assert is_directory(tmp_path)
    beyond = Path("/proc/1/cwd/x") if os.geteuid() else tmp_path / "x"
    assert not exists(beyond)
    assert not is_directory(beyond)
