"""The cause of an outcome, as seen from a site."""

from __future__ import annotations

import pytest

from monitor.models.run import State
from monitor.runs.ledger.attribution import STATE_LABELS, Fault, fault, outcome_label


@pytest.mark.parametrize(
    ("state", "failed_site", "whose"),
    [
        (State.PASSED, "", Fault.NONE),
        (State.FAILED, "ours", Fault.HERE),
        (State.TIMED_OUT, "ours", Fault.HERE),
        (State.FAILED, "theirs", Fault.ELSEWHERE),
        (State.FAILED, "", Fault.SOMEWHERE),
        (State.BROKEN, "ours", Fault.MONITOR),
        (State.MISSED, "", Fault.MONITOR),
        (State.LOST, "", Fault.MONITOR),
        (State.SKIPPED, "", Fault.NONE),
        (State.NO_DATA, "", Fault.NONE),
    ],
)
def test_an_outcome_is_attributed_to_a_site_only_if_its_own_resource_failed(
    state: State, failed_site: str, whose: Fault
) -> None:
    assert fault(state, failed_site=failed_site, site="ours") == whose


def test_every_state_has_a_label() -> None:
    assert set(STATE_LABELS) == set(State)


def test_the_label_names_the_place() -> None:
    assert outcome_label(State.FAILED, Fault.HERE) == "failed here"
    assert outcome_label(State.TIMED_OUT, Fault.ELSEWHERE) == "timed out elsewhere"
    assert outcome_label(State.PASSED) == "passed"
