"""Commands of the reporter as a user without a name and a home: ``docker run --user 54321``."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reporters import account
from tests.ordinary_user import only_root, python_for_nobody

ROOT = Path(__file__).resolve().parents[3]
NAMELESS = 54_321
# The own account is read in reporters/account.py. The others name accounts on purpose, or fail in words.
READERS = {
    "monitor/operations/embedded/server_user.py": "of the server; initdb needs a name",
    "monitor/management/caller.py": "with the number",
    "reporters/account.py": "here",
    "reporters/credentials/ssh_configuration.py": "what ssh reads",
    "reporters/remote/policy/disclosure.py": "no name is hidden where there is none",
}
ACCOUNT_CALLS = {"getuser", "getlogin", "getpwuid", "getpwnam", "expanduser", "home"}


@pytest.fixture
def archive(pyz: Path, tmp_path: Path) -> Iterator[Path]:
    """The archive in a directory that every user can read; homes may be closed."""
    directory = Path("/tmp") / f"gridcast-test-{tmp_path.name}-{os.getpid()}"
    directory.mkdir(mode=0o755)
    yield Path(shutil.copy(pyz, directory / "reporter.pyz"))
    shutil.rmtree(directory)


@only_root
@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["doctor"], 0, "policy"),
        (["status"], None, ""),
        (["ledger"], None, ""),
        (["preview"], None, ""),
        (["install", "--print"], None, ""),
        (["uninstall"], None, ""),
        (["once", "login", "--trial", "--scratch=/tmp"], None, "login"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_of_a_user_without_a_name_has_no_traceback(
    archive: Path, words: list[str], status: int | None, says: str
) -> None:
    done = subprocess.run(
        [python_for_nobody(), str(archive), *words],
        user=NAMELESS, group=NAMELESS, extra_groups=[], cwd="/", env={"PATH": os.defpath},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert says in done.stdout, done.stderr
    assert status in (None, done.returncode), done.stdout


def test_a_home_directory_is_that_of_the_environment_or_of_the_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/of/the/environment")
    assert account.own_home() == Path("/of/the/environment")
    assert account.expanded("~/x") == Path("/of/the/environment/x")
    assert account.expanded("~") == Path("/of/the/environment")
    assert account.expanded("~nobody-has-this-name/x") == Path("~nobody-has-this-name/x")
    assert account.expanded("/x") == Path("/x")


def test_no_other_module_reads_the_own_account() -> None:
    """Each such call fails for a user without an entry in the user database."""
    found = {
        str(path.relative_to(ROOT))
        for package in ("reporters", "probes", "monitor", "client", "integrations")
        for path in (ROOT / package).rglob("*.py")
        if "testbed" not in path.parts and account_calls(path)
    }
    assert found == set(READERS)


def account_calls(path: Path) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Attribute))
    return [node.attr for node in calls if node.attr in ACCOUNT_CALLS]
