"""The small parts of the agent: back-off, log, messages, cursor and history."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reporters.remote.agent import cursor, history
from reporters.remote.agent.backoff import Backoff
from reporters.remote.agent.cursor import Cursor, CursorFile
from reporters.remote.agent.log import MAX_FILE_BYTES, AgentLog
from reporters.remote.agent.notices import MAX_NOTICES, WARNING, Notices
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.skipped import skipped
from tests.reporters.remote.policy.assignments import assignment

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_the_wait_grows_up_to_its_bound_and_is_random_from_zero_on() -> None:
    bounds: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    backoff = Backoff(2.0, 10.0, uniform)
    assert [backoff.failed() for _ in range(4)] == [2.0, 4.0, 8.0, 10.0]
    assert {low for low, _ in bounds} == {0.0}
    backoff.succeeded()
    assert backoff.failed() == 2.0
    for _ in range(2000):
        backoff.failed()
    assert backoff.failed() == 10.0


def test_a_wait_that_the_server_asks_for_is_never_shortened() -> None:
    backoff = Backoff(2.0, 10.0)
    waits = [backoff.failed(100.0) for _ in range(100)]
    assert min(waits) >= 100
    assert max(waits) <= 110
    assert len(set(waits)) > 50, "all agents would come back at once"


def test_the_log_is_bounded_and_one_line_for_each_text(tmp_path: Path) -> None:
    stream = io.StringIO()
    log = AgentLog(tmp_path / "agent.log", stream)
    log.write("info", "first\nsecond")
    assert stream.getvalue().endswith(" info first second\n")
    for _ in range(5):
        log.write("info", "x" * (MAX_FILE_BYTES // 2))
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert len(sizes) <= 2
    assert sum(sizes) < 3 * MAX_FILE_BYTES


def test_a_log_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    stream = io.StringIO()
    stream.close()
    AgentLog(tmp_path / "missing" / "agent.log", stream).write("info", "x")


@pytest.fixture
def notices(tmp_path: Path) -> Notices:
    return Notices(AgentLog(tmp_path / "agent.log", io.StringIO()), lambda: NOON, lambda: 0.0)


def test_a_message_is_told_once_until_it_is_put_back(notices: Notices) -> None:
    notices.add(WARNING, "a")
    notices.add(WARNING, "a")
    taken = notices.take()
    assert [notice.text for notice in taken] == ["a"]
    assert notices.take() == []
    notices.add(WARNING, "b")
    notices.put_back(taken)
    assert [notice.text for notice in notices.take()] == ["a", "b"]


def test_the_newest_messages_are_kept(notices: Notices) -> None:
    for number in range(MAX_NOTICES + 10):
        notices.add(WARNING, str(number))
    texts = [notice.text for notice in notices.take()]
    assert (len(texts), texts[-1]) == (MAX_NOTICES, str(MAX_NOTICES + 9))


def test_the_cursor_survives_a_restart_without_requests_that_expired(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    assert cursor.read(state) is None
    requests = {"valid": NOON + timedelta(hours=1), "expired": NOON}
    file = CursorFile(state)
    file.keep(Cursor(NOON, requests), NOON)
    later = NOON + timedelta(minutes=1)
    more = {"valid": NOON + timedelta(hours=1), "new": NOON + timedelta(hours=2)}
    assert cursor.read(state) == Cursor(NOON, {"valid": NOON + timedelta(hours=1)})
    file.keep(Cursor(later, more), later)
    assert cursor.read(state) == Cursor(later, more)
    assert len((tmp_path / cursor.FILE).read_bytes().splitlines()) == 2
    CursorFile(state).keep(Cursor(NOON, more), NOON)  # a clock that was wrong
    assert cursor.read(state) == Cursor(NOON, more)


def test_a_line_of_the_cursor_that_a_crash_has_cut_off_does_not_count(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    (tmp_path / cursor.FILE).write_text("{")
    assert cursor.read(state) is None
    CursorFile(state).keep(Cursor(NOON, {"one": NOON + timedelta(hours=1)}), NOON)
    with (tmp_path / cursor.FILE).open("a") as stream:
        stream.write('{"time": "2026')
    assert cursor.read(state) == Cursor(NOON, {"one": NOON + timedelta(hours=1)})
    CursorFile(state).keep(Cursor(NOON + timedelta(minutes=1)), NOON)
    assert cursor.read(state) == Cursor(NOON + timedelta(minutes=1))


def test_the_file_of_the_cursor_stays_short(tmp_path: Path) -> None:
    state, file, requests = StateDirectory(tmp_path), CursorFile(StateDirectory(tmp_path)), {}
    file.keep(Cursor(NOON), NOON)
    for number in range(300):
        requests = {f"{number}-{each}-{'x' * 900}": NOON + timedelta(hours=1) for each in range(2)}
        file.keep(Cursor(NOON, requests), NOON)
    assert (tmp_path / cursor.FILE).stat().st_size <= 256 * 1024
    assert set(requests) <= set(cursor.read(state).requests)  # type: ignore[union-attr]


def test_a_file_of_the_cursor_that_was_removed_is_written_whole(tmp_path: Path) -> None:
    state, file = StateDirectory(tmp_path), CursorFile(StateDirectory(tmp_path))
    file.keep(Cursor(NOON, {"one": NOON + timedelta(hours=1)}), NOON)
    (tmp_path / cursor.FILE).unlink()
    both = {"one": NOON + timedelta(hours=1), "two": NOON + timedelta(hours=1)}
    file.keep(Cursor(NOON, both), NOON)
    assert cursor.read(state) == Cursor(NOON, both)
    (tmp_path / cursor.FILE).unlink()
    (tmp_path / cursor.FILE).mkdir()
    with pytest.raises(StateError, match=r"cannot write .*slots\.jsonl: Is a directory"):
        file.keep(Cursor(NOON), NOON)


def test_the_history_is_read_in_order_and_without_cut_lines(tmp_path: Path) -> None:
    report = skipped(assignment(), "policy: no")
    for _ in range(2):
        history.add(tmp_path, report)
    with (tmp_path / history.FILE).open("a") as file:
        file.write('{"run": ')
    (one, _) = history.read(tmp_path)
    assert (one.run, one.outcome, one.reason) == (str(report.run), "skipped", "policy: no")


def test_the_history_is_bounded(tmp_path: Path) -> None:
    (tmp_path / history.FILE).write_bytes(b"x" * history.MAX_FILE_BYTES)
    report = skipped(assignment(), "policy: no")
    for _ in range(2):
        history.add(tmp_path, report)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1.1 * history.MAX_FILE_BYTES
    assert len(list(history.read(tmp_path))) == 1
