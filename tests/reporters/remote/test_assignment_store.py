"""Signed assignments, with the keys of the real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reporters.remote import signing
from reporters.remote.assignment import AssignmentRefused
from reporters.remote.assignment_store import ASK, AUTO, FROZEN, AssignmentStore, SignedAssignment
from reporters.remote.state_directory import (
    ASSIGNMENT,
    HIGHEST_ASSIGNMENT,
    PENDING_ASSIGNMENT,
    StateDirectory,
    StateError,
)
from tests.reporters.needs import needs
from tests.reporters.remote.assignments import assignment, enrolled, series, sign

CHANGED = series(limit_seconds=30)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    needs("openssl", "ssh-keygen")
    return StateDirectory.open(tmp_path)


@pytest.fixture
def store(state: StateDirectory) -> AssignmentStore:
    return AssignmentStore(state, enrolled(state))


def waiting(store: AssignmentStore) -> SignedAssignment:
    pending = store.pending()
    assert pending is not None
    return pending


def version(signed: Any) -> int | None:
    return None if signed is None else signed.assignment.version


@pytest.mark.parametrize("method", signing.names())
def test_an_accepted_assignment_is_there_after_a_restart(state: StateDirectory, method: str) -> None:
    identity = enrolled(state, method)
    store = AssignmentStore(state, identity)
    assert store.current() is None
    assert version(store.offer(sign(assignment(), method=method), AUTO)) == 7
    assert version(AssignmentStore(state, identity).current()) == 7


@pytest.mark.parametrize(
    "envelope",
    [
        None,
        [],
        {},
        {"document": "{}"},
        {"document": {}, "signature": ""},
        {**sign(assignment()), "signature": ""},
        {**sign(assignment()), "document": sign(assignment(capacity=5))["document"]},
        sign(assignment(), signing.RECEIPT),
        sign(assignment(reporter="psc")),
        sign("{}"),
        sign(assignment(series(probe="rm"))),
        {"document": "x" * 5_000_000, "signature": "AAAA"},
    ],
)
def test_what_the_server_did_not_sign_for_this_reporter_is_refused(
    store: AssignmentStore, state: StateDirectory, envelope: Any
) -> None:
    store.offer(sign(assignment()), AUTO)
    before = state.read(ASSIGNMENT)
    with pytest.raises(AssignmentRefused):
        store.offer(envelope, AUTO)
    assert state.read(ASSIGNMENT) == before


def test_a_version_never_goes_back(store: AssignmentStore) -> None:
    store.offer(sign(assignment(version=8)), AUTO)
    with pytest.raises(AssignmentRefused, match="version 7 is older than version 8, which is here"):
        store.offer(sign(assignment(version=7)), AUTO)
    with pytest.raises(AssignmentRefused, match="version 8 is here with other content"):
        store.offer(sign(assignment(CHANGED, version=8)), AUTO)
    assert version(store.offer(sign(assignment(version=8)), AUTO)) == 8
    assert version(store.offer(sign(assignment(CHANGED, version=9)), AUTO)) == 9


def test_a_change_waits_for_approval(store: AssignmentStore) -> None:
    assert store.offer(sign(assignment()), ASK) is None
    assert store.current() is None
    assert version(store.approve(waiting(store))) == 7
    assert store.offer(sign(assignment(CHANGED, version=8)), ASK) is None
    assert (version(store.current()), version(store.pending())) == (7, 8)
    with pytest.raises(AssignmentRefused, match="version 7 is older than version 8"):
        store.offer(sign(assignment()), ASK)
    assert store.offer(sign(assignment(CHANGED, version=9)), ASK) is None
    assert version(store.approve(waiting(store))) == version(store.current()) == 9
    assert store.pending() is None


def test_only_what_was_shown_and_still_waits_is_approved(store: AssignmentStore) -> None:
    store.offer(sign(assignment()), ASK)
    shown = waiting(store)
    store.offer(sign(assignment(CHANGED, version=8)), ASK)
    with pytest.raises(AssignmentRefused, match="version 7 no longer waits"):
        store.approve(shown)
    assert store.current() is None
    shown = waiting(store)
    store.approve(shown)
    with pytest.raises(AssignmentRefused, match="version 8 no longer waits"):
        store.approve(shown)


def test_a_forecast_needs_no_approval(store: AssignmentStore) -> None:
    store.offer(sign(assignment()), AUTO)
    forecast = series(expected_seconds={"total.seconds": 3})
    assert version(store.offer(sign(assignment(forecast, version=8)), ASK)) == 8
    assert version(store.offer(sign(assignment(version=9)), FROZEN)) == 9


def test_a_withdrawn_change_no_longer_waits(store: AssignmentStore) -> None:
    store.offer(sign(assignment()), AUTO)
    store.offer(sign(assignment(CHANGED, version=8)), ASK)
    assert version(store.offer(sign(assignment(version=9)), ASK)) == 9
    assert store.pending() is None


def test_a_frozen_site_refuses_changes(store: AssignmentStore) -> None:
    with pytest.raises(AssignmentRefused, match=r"accepts no changes \(frozen\)"):
        store.offer(sign(assignment()), FROZEN)


def test_a_file_that_was_changed_at_the_site_is_refused(
    store: AssignmentStore, state: StateDirectory
) -> None:
    store.offer(sign(assignment()), AUTO)
    content = state.read(ASSIGNMENT) or b""
    state.write(ASSIGNMENT, content.replace(b"noop-ncsa", b"noop-else"))
    with pytest.raises(AssignmentRefused, match="its signature is not the server's"):
        store.current()
    state.write(ASSIGNMENT, b"{")
    with pytest.raises(StateError):
        store.current()
    assert version(store.offer(sign(assignment()), AUTO)) == 7, "a damaged file is replaced"


def test_an_unapproved_file_that_is_damaged_does_not_hinder(
    store: AssignmentStore, state: StateDirectory
) -> None:
    state.write(PENDING_ASSIGNMENT, b'{"document": "", "signature": ""}')
    assert version(store.offer(sign(assignment()), AUTO)) == 7
    assert state.read(PENDING_ASSIGNMENT) is None


@pytest.mark.parametrize("damage", [b"{", None])
def test_an_older_version_stays_refused_when_the_assignments_are_damaged(
    store: AssignmentStore, state: StateDirectory, damage: bytes | None
) -> None:
    """An older assignment has a valid signature, too."""
    store.offer(sign(assignment(version=8)), AUTO)
    store.offer(sign(assignment(CHANGED, version=9)), ASK)
    for name in (ASSIGNMENT, PENDING_ASSIGNMENT):
        state.remove(name) if damage is None else state.write(name, damage)
    for approval in (AUTO, ASK):
        with pytest.raises(AssignmentRefused, match="version 8 is older than version 9, which is here"):
            store.offer(sign(assignment(version=8)), approval)
        with pytest.raises(AssignmentRefused, match="version 9 is here with other content"):
            store.offer(sign(assignment(version=9)), approval)
    assert version(store.offer(sign(assignment(CHANGED, version=9)), AUTO)) == 9


def test_without_any_readable_version_the_operator_decides(
    store: AssignmentStore, state: StateDirectory
) -> None:
    store.offer(sign(assignment()), AUTO)
    state.write(HIGHEST_ASSIGNMENT, b'{"version": "seven"}')
    assert version(store.offer(sign(assignment(CHANGED, version=8)), AUTO)) == 8, "version 7 is readable"
    for name in (ASSIGNMENT, HIGHEST_ASSIGNMENT):
        state.write(name, b"{}")
    with pytest.raises(StateError, match="remove it to accept whatever version the server sends"):
        store.offer(sign(assignment(CHANGED, version=8)), AUTO)
    state.remove(HIGHEST_ASSIGNMENT)
    assert version(store.offer(sign(assignment(CHANGED, version=8)), AUTO)) == 8
