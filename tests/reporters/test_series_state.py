"""What a series keeps between its runs, in a file of the reporter."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporters.series_state import MAX_BYTES, SeriesState, StateNotKept


def test_the_text_of_a_series_is_kept_and_that_of_another_is_not_touched(tmp_path: Path) -> None:
    directory = tmp_path / "series"
    assert SeriesState(directory, "a").read() is None
    SeriesState(directory, "a").write("first")
    SeriesState(directory, "b").write("other")
    SeriesState(directory, "a").write("zweiter ü")
    assert SeriesState(directory, "a").read() == "zweiter ü"
    assert SeriesState(directory, "b").read() == "other"
    assert sorted(file.name for file in directory.iterdir()) == ["a.state", "b.state"]
    assert directory.stat().st_mode & 0o077 == 0


def test_a_text_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    state = SeriesState(tmp_path, "a")
    state.write("first")
    (tmp_path / "a.draft").mkdir()
    with pytest.raises(StateNotKept, match=r"cannot write .*a\.state: Is a directory"):
        state.write("second")
    assert state.read() == "first"
    (tmp_path / "a.draft").rmdir()
    with pytest.raises(StateNotKept, match="are more than"):
        state.write("x" * (MAX_BYTES + 1))
    assert state.read() == "first"


def test_what_a_killed_write_has_left_changes_nothing(tmp_path: Path) -> None:
    state = SeriesState(tmp_path, "a")
    state.write("first")
    (tmp_path / "a.draft").write_text("sec", encoding="ascii")
    assert state.read() == "first"
    state.write("second")
    assert state.read() == "second"
    assert [file.name for file in tmp_path.iterdir()] == ["a.state"]


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff", "no UTF-8 text"), (b"x" * (MAX_BYTES + 1), "remove it")]
)
def test_a_file_that_is_none_of_ours_is_an_error_with_its_name(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.state").write_bytes(content)
    with pytest.raises(StateNotKept, match=rf"a\.state.* {message}"):
        SeriesState(tmp_path, "a").read()
