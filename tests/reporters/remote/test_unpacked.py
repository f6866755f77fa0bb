"""The unpacked sources, used by processes that run from the archive."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reporters.remote import archive, unpacked
from tests.by_night import by_night

# Which file a module comes from after *function* of reporters.remote.unpacked.
SCRIPT = """
import sys; sys.path.insert(0, sys.argv[1])
from pathlib import Path
from reporters.remote import unpacked
try:
    print(unpacked.{function}(Path(sys.argv[2])))
except unpacked.NotUnpacked as error:
    print(error)
import probes.noop, reporters.remote.agent.agent, reporters.spool.spool as spool
print(probes.noop.__file__, spool.__file__)
"""


def call(pyz: Path, state: Path, function: str) -> list[str]:
    argv = [sys.executable, "-I", "-S", "-c", SCRIPT.format(function=function), str(pyz), str(state)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def modules(root: Path) -> str:
    return f"{root}/probes/noop.py {root}/reporters/spool/spool.py"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    directory = tmp_path / "state"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def directory(pyz: Path, state: Path) -> Path:
    """Where the archive belongs."""
    return state / "code" / archive.digest(pyz.read_bytes())[:16]


def test_an_archive_is_unpacked_once_beside_other_versions(pyz: Path, state: Path, directory: Path) -> None:
    (state / "code").mkdir(mode=0o700)
    (state / "code" / "0123456789abcdef").mkdir()
    for _ in range(2):
        assert call(pyz, state, "make") == [str(directory), modules(directory)]
    assert len(list((state / "code").iterdir())) == 2, "an agent may run from the other one"
    assert (directory.stat().st_mode | (state / "code").stat().st_mode) & 0o077 == 0
    unpacked.remove_others(directory)
    assert list((state / "code").iterdir()) == [directory]


def test_other_commands_use_what_is_unpacked_and_unpack_nothing(
    pyz: Path, state: Path, directory: Path
) -> None:
    assert call(pyz, state, "use") == ["None", modules(pyz)]
    assert not list(state.iterdir())
    call(pyz, state, "make")
    assert call(pyz, state, "use") == [str(directory), modules(directory)]


@pytest.mark.parametrize("level", [by_night(0), by_night(1), 2])
def test_no_code_is_loaded_from_where_other_users_can_write(
    pyz: Path, state: Path, directory: Path, level: int
) -> None:
    call(pyz, state, "make")
    [state, directory.parent, directory][level].chmod(0o720)
    assert call(pyz, state, "use") == ["None", modules(pyz)]
    refused, loaded = call(pyz, state, "make")
    assert refused.startswith("other users can write to ")
    assert loaded == modules(pyz)


def test_a_directory_that_cannot_be_filled_is_not_left_behind(pyz: Path, state: Path) -> None:
    (state / "code").write_text("in the way")
    refused, loaded = call(pyz, state, "make")
    assert refused.startswith(f"cannot unpack {pyz} to {state}/code/")
    assert loaded == modules(pyz)


def test_an_archive_that_was_replaced_meanwhile_is_not_unpacked(
    pyz: Path, state: Path, tmp_path: Path
) -> None:
    """The process would mix modules of two versions."""
    replaced = tmp_path / "reporter.pyz"
    replaced.write_bytes(pyz.read_bytes())
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from reporters.remote import this_archive, unpacked\n"
        "this_archive.sha256()\n"
        "with open(sys.argv[1], 'ab') as file: file.write(b'another version')\n"
        "try: unpacked.make(Path(sys.argv[2]))\n"
        "except unpacked.NotUnpacked as error: print(error)\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", script, str(replaced), str(state)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "the file was replaced since this process started" in done.stdout
    assert not list(state.iterdir())
