from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reporters.remote.options import default_path
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError


def test_the_default_follows_the_specification_of_xdg() -> None:
    assert default_path({"XDG_STATE_HOME": "/var/me"}) == Path("/var/me/gridcast-reporter")
    in_home = Path("~/.local/state/gridcast-reporter").expanduser()
    assert default_path({}) == default_path({"XDG_STATE_HOME": "relative"}) == in_home


def test_it_is_made_with_its_parents_for_its_owner_only(tmp_path: Path) -> None:
    state = StateDirectory.create(tmp_path / "a" / "b")
    assert stat.S_IMODE(state.path.stat().st_mode) == 0o700
    state.write(IDENTITY, b"x")
    assert stat.S_IMODE((state.path / IDENTITY).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_directory_that_other_users_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(StateError, match=f"other users can write to it; run: chmod 700 {tmp_path}"):
        StateDirectory.open(tmp_path)
    tmp_path.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(StateError, match="it belongs to user 12345"):
        StateDirectory.open(tmp_path)


def test_a_missing_directory_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="No such file or directory; run `enrol` first"):
        StateDirectory.open(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="it is not a directory"):
        StateDirectory.open(tmp_path / "file")
    with pytest.raises(StateError, match="cannot make the state directory"):
        StateDirectory.create(tmp_path / "file" / "below")


def test_a_file_that_cannot_be_replaced_keeps_its_content(tmp_path: Path) -> None:
    state = StateDirectory.open(tmp_path)
    (tmp_path / IDENTITY).mkdir()
    with pytest.raises(StateError, match=f"cannot write {tmp_path / IDENTITY}"):
        state.write(IDENTITY, b"new")
    assert [file.name for file in tmp_path.iterdir()] == [IDENTITY]


def test_objects_are_read_as_they_were_written(tmp_path: Path) -> None:
    state = StateDirectory.open(tmp_path)
    assert state.read_object(IDENTITY) is None
    state.write_object(IDENTITY, {"a": [1]})
    assert state.read_object(IDENTITY) == {"a": [1]}
    (tmp_path / IDENTITY).write_text("{")
    with pytest.raises(StateError, match=f"cannot use {tmp_path / IDENTITY}: not JSON"):
        state.read_object(IDENTITY)
    state.remove(IDENTITY)
    state.remove(IDENTITY)
    assert state.read(IDENTITY) is None


def test_a_huge_file_is_not_read_into_memory(tmp_path: Path) -> None:
    with (tmp_path / IDENTITY).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(StateError, match="it has more than"):
        StateDirectory.open(tmp_path).read(IDENTITY)
