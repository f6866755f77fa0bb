"""Variables about the limits of web processes."""

from __future__ import annotations

import pytest

from monitor.core.env import InvalidVariable
from monitor.operations.web_server import environment

READERS = {
    "GRIDCAST_PROCESSOR_SECONDS": environment.processor_seconds,
    "GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS": environment.anonymous_processor_seconds,
    "GRIDCAST_WEB_MAX_BYTES": environment.web_max_bytes,
}


def test_defaults_are_generous(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in READERS:
        monkeypatch.setenv(name, "")  # as docker-compose.yml passes it
    assert [read() for read in READERS.values()] == [15.0, 1.0, None]


@pytest.mark.parametrize("name", READERS)
def test_a_number_is_read_and_anything_else_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1000000")
    assert READERS[name]() == 1_000_000
    for text in ("0", "-1", "much", "nan", "inf"):
        monkeypatch.setenv(name, text)
        with pytest.raises(InvalidVariable, match=f"{name}: expected a number above 0"):
            READERS[name]()


WHOLE = {
    "GRIDCAST_CONNECTIONS_PER_ADDRESS": (environment.connections_per_address, 100),
    "GRIDCAST_WEB_STATEMENT_SECONDS": (environment.statement_seconds, 30),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_is_read_and_anything_else_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    read, default = WHOLE[name]
    for text, expected in (("", default), ("7", 7)):
        monkeypatch.setenv(name, text)
        assert read() == expected
    for text in ("0", "-1", "many", "1.5", "1000000", "\N{SUPERSCRIPT TWO}"):
        monkeypatch.setenv(name, text)
        with pytest.raises(InvalidVariable, match=f"{name}: expected a whole number from 1"):
            read()
