"""Each door at which a file is read, executed or written: another user may have prepared the directory."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from monitor.core import env
from monitor.operations.embedded import NotOurs, places
from reporters.base import CannotConnect, CredentialUnfit
from reporters.compiled import CannotCompile, compiled
from reporters.credentials.proxy import ProxyCertificate
from reporters.credentials.ssh_key import SshAgent, key_problem
from reporters.credentials.token import BearerToken
from reporters.iotrace import darshan_log
from reporters.iotrace.calls import BadTrace
from reporters.remote.policy.file import read_policy
from reporters.remote.signing.base import SigningUnavailable, work_directory
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.shells import ssh
from tests.reporters.needs import needs

SOURCE = {"answer.c": "int main(void) { return 42; }\n"}
REFUSALS = (
    StateError, CredentialUnfit, CannotCompile, CannotConnect, SigningUnavailable, BadTrace, NotOurs,
    env.InvalidVariable,
)  # fmt: skip
Patch = pytest.MonkeyPatch


def refusal(act: Callable[[], object]) -> str:
    """Return the message of the refusal of *act*; empty if it succeeds."""
    try:
        act()
    except REFUSALS as error:
        return str(error)
    return ""


def created(place: Path, _: Patch) -> str:
    return refusal(lambda: StateDirectory.create(place / "state"))


def opened(place: Path, _: Patch) -> str:
    (place / "state").mkdir(mode=0o700)
    return refusal(lambda: StateDirectory.open(place / "state"))


def policy(place: Path, _: Patch) -> str:
    (place / "site-policy.json").write_text("{}")
    return read_policy(place / "site-policy.json").error


def token(place: Path, _: Patch) -> str:
    file = place / "token"
    file.touch(mode=0o600)
    file.write_text("abc")
    return refusal(BearerToken(str(file)).read)


def proxy(place: Path, _: Patch) -> str:
    file = place / "proxy"
    file.touch(mode=0o600)
    message = refusal(lambda: ProxyCertificate(str(file), str(place)).check(needed_seconds=1.0))
    assert message  # it is empty
    return message


def ssh_key(place: Path, _: Patch) -> str:
    file = place / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return key_problem(file, SshAgent(""))


def program(place: Path, _: Patch) -> str:
    return refusal(lambda: compiled(place / "cache", "answer", SOURCE, []))


def ssh_control(place: Path, patch: Patch) -> str:
    patch.setattr(tempfile, "tempdir", str(place))
    shell = ssh.Shell("site", str(place), host="localhost", port=1)
    message = refusal(lambda: shell.connect(timeout_seconds=30.0))
    assert message  # nothing listens there
    return message


def signing_files(place: Path, patch: Patch) -> str:
    patch.setenv("TMPDIR", str(place))

    def use() -> None:
        with work_directory() as directory:
            if directory.parent != place:
                raise SigningUnavailable(f"every user could replace {place}, so {directory} is used")

    return refusal(use)


def darshan_copy(place: Path, patch: Patch) -> str:
    patch.setattr(tempfile, "tempdir", str(place))
    message = refusal(lambda: darshan_log.read(place / "none.darshan"))
    assert message  # there is no such log
    return message


def service_state(place: Path, patch: Patch) -> str:
    patch.setenv("GRIDCAST_VAR", str(place / "var"))
    return refusal(env.var_directory)


def state_entry(name: str) -> Callable[[Path, Patch], str]:
    """Return the door of the entry *name* of the state directory of the service."""

    def entered(place: Path, patch: Patch) -> str:
        var = place.parent / f"var-{place.name}"
        var.mkdir(mode=0o700)
        (var / name).parent.mkdir(mode=0o700, exist_ok=True)
        (var / name).symlink_to(place)
        patch.setenv("GRIDCAST_VAR", str(var))
        return refusal(env.var_directory)

    return entered


def sockets(place: Path, patch: Patch) -> str:
    patch.setattr(places, "SOCKETS", place)
    return refusal(lambda: places.make_socket_directory(place / "var"))


def relocated_data(place: Path, patch: Patch) -> str:
    patch.setattr(places, "RELOCATED", place / "gridcast")
    return refusal(lambda: places.make_relocation(place / "var"))


ROOT = Path(__file__).parents[2]
DOORS = [
    created, opened, policy, token, proxy, ssh_key, program, ssh_control, signing_files, darshan_copy,
    service_state, sockets, relocated_data, *map(state_entry, env.STATE_ENTRIES),
]  # fmt: skip


PROGRAMS: Mapping[Callable[[Path, Patch], str], list[str]] = {ssh_key: ["ssh-keygen"], program: ["cc"]}


@pytest.fixture
def short_path() -> Iterator[Path]:
    """Return a new directory whose path leaves room for the name of a socket."""
    with tempfile.TemporaryDirectory(prefix="p-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_used_where_another_user_could_replace_it(
    door: Callable[[Path, Patch], str], short_path: Path, monkeypatch: Patch
) -> None:
    needs(*PROGRAMS.get(door, ()))
    for name, mode, is_refused in (("safe", 0o755, False), ("shared", 0o777, True)):
        place = short_path / name
        place.mkdir()
        place.chmod(mode)
        with monkeypatch.context() as patch:
            message = door(place, patch)
        assert ("every user could replace" in message) == is_refused, message


# Modules that name a place by themselves, with the reason why they need not examine it.
UNEXAMINED = {
    "reporters/account.py": "names the home directory",
    "reporters/iotrace/run.py": "its directory is beside the file that the user names; nothing is executed",
    "reporters/preloaded.py": "names the cache, which compiled() examines",
    "reporters/shells/gram.py": "its temporary file has no name",
    "reporters/tokens/run.py": "its temporary file has no name",
    "reporters/credentials/proxy.py": "credentials/files.py reads the file",
    "reporters/credentials/ssh_configuration.py": "names files, which ssh and credentials/files.py read",
    "reporters/remote/local_run.py": "names a scratch, which the run examines",
    "reporters/remote/options.py": "names the state directory, which StateDirectory examines",
    "reporters/remote/commands/doctor.py": "examines it by the rules of a scratch",
}
STATE_ENTRY = re.compile(r'(?:VAR_DIR|var_directory\(\)|\bvar) / "([a-z.-]+)"')
NAMES_A_PLACE = re.compile(r"\btempfile\.|\"/(var/)?tmp|XDG_|Path\.home\(|\.?expanduser\(")


def test_every_module_that_names_a_place_examines_it() -> None:
    naming = {
        str(file.relative_to(ROOT)): "unsafe_reason" in text
        for package in ("reporters", "probes")
        for file in (ROOT / package).rglob("*.py")
        if NAMES_A_PLACE.search(text := file.read_text(encoding="utf-8"))
    }
    assert {name for name, examines in naming.items() if not examines} <= UNEXAMINED.keys()
    assert UNEXAMINED.keys() <= naming.keys()


def test_every_entry_of_the_state_directory_is_examined() -> None:
    """The data of PostgreSQL may belong to another user, as whom it runs; PostgreSQL examines them."""
    named = {
        name
        for file in (ROOT / "monitor").rglob("*.py")
        for name in STATE_ENTRY.findall(file.read_text(encoding="utf-8"))
    }
    assert named - {"postgres"} <= set(env.STATE_ENTRIES)
    assert len(named) > 8, "the pattern finds entries"


def test_no_documented_command_uses_a_name_that_another_user_can_take() -> None:
    documents = [ROOT / "docker-compose.yml", ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    commands = re.compile(r"(?:celery|gunicorn|manage\.py|reporters)\b[^`\n]*[= ](/(?:var/)?tmp/[^\s`,\]]+)")
    for file in documents:
        assert commands.findall(file.read_text(encoding="utf-8")) == [], file.name


def test_the_default_socket_of_tokens_is_examined(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", "reporters", "tokens", "status"],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "every user could replace its entries" in done.stderr
    assert done.stderr.endswith("or name one with --socket\n")
