from __future__ import annotations

from pathlib import Path

import pytest

from reporters.remote.policy.usage import DayUsage, UsageAccount, added, of_run
from reporters.remote.state_directory import StateDirectory, StateError
from reporters.usage import ResourceUsage

DAY = "2026-11-23"


def test_the_use_of_a_day_survives_a_restart(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path)
    account = UsageAccount(state)
    account.add(DAY, DayUsage(10.0, 500))
    account.keep()
    account.add(DAY, DayUsage(2.5, 1))
    assert UsageAccount(state).of(DAY) == DayUsage(10.0, 500)
    account.keep()
    assert UsageAccount(state).of(DAY) == account.of(DAY) == DayUsage(12.5, 501)
    assert account.of("2026-11-24") == DayUsage()


def test_a_run_uses_its_jobs_its_process_and_each_copied_byte_once() -> None:
    usage = {"a": ResourceUsage(bytes_sent=100, cpu_seconds=3.0), "b": ResourceUsage(bytes_received=100)}
    assert of_run(usage, 0.5) == DayUsage(3.5, 100)
    assert of_run({"b": ResourceUsage(bytes_received=7)}, 0.0) == DayUsage(0.0, 7)


def test_the_oldest_days_go_but_never_the_day_of_the_run() -> None:
    days: dict[str, DayUsage] = {}
    for number in range(1, 15):
        days = added(days, f"2026-11-{number:02}", DayUsage(1.0, 1))
    assert list(days) == [f"2026-11-{number:02}" for number in range(7, 15)]
    days = added(days, "2026-11-01", DayUsage(1.0, 1))  # the clock went back
    assert "2026-11-01" in days


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"days": []}',
        '{"days": {"2026-11-23": {"cpu_seconds": -1, "copied_bytes": 0}}}',
        '{"days": {"2026-11-23": {"cpu_seconds": 1}}}',
        '{"days": {"2026-11-23": {"cpu_seconds": NaN, "copied_bytes": 0}}}',
    ],
)
def test_a_damaged_file_never_counts_as_nothing_used(tmp_path: Path, content: str) -> None:
    (tmp_path / "usage.json").write_text(content)
    account = UsageAccount(StateDirectory(tmp_path))
    with pytest.raises(StateError, match=r"usage\.json"):
        account.of(DAY)
    with pytest.raises(StateError, match=r"usage\.json"):
        account.add(DAY, DayUsage(1.0))
