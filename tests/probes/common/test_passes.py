"""Passes of a sweep: orders, positions, and what is kept between runs."""

from __future__ import annotations

import pytest

from probes.common.passes import SweepPosition, SweepState, order, parse_state

BEGAN = 1_795_707_216


def test_each_pass_has_every_combination_once_in_an_order_of_its_own() -> None:
    orders = [order(50, 1, SweepPosition(BEGAN, number)) for number in range(1, 7)]
    assert all(sorted(each) == list(range(50)) for each in orders)
    assert len(set(map(tuple, orders))) == 6


def test_a_pass_that_goes_on_later_keeps_its_order() -> None:
    assert order(50, 1, SweepPosition(BEGAN, 3, 0)) == order(50, 1, SweepPosition(BEGAN, 3, 20))
    assert order(50, 1, SweepPosition(BEGAN, 3)) != order(50, 2, SweepPosition(BEGAN, 3))
    assert order(50, 1, SweepPosition(BEGAN, 3)) != order(50, 1, SweepPosition(BEGAN + 1, 3))


def test_runs_of_any_length_measure_all_passes_and_then_begin_a_new_sweep() -> None:
    position, measured = SweepPosition(BEGAN), []
    for count in [1, 4, 2, 3] * 50:
        done = order(5, 1, position)[position.done :][:count]
        measured += [(position.number, number) for number in done]
        after = position.advanced(len(done), 5, 6)
        if after is None:
            break
        position = after
    assert sorted(measured) == [(number, cell) for number in range(1, 7) for cell in range(5)]


@pytest.mark.parametrize(
    "state",
    [
        SweepState(),
        SweepState("a" * 16, SweepPosition(BEGAN, 4, 17)),
        SweepState("a" * 16, None, {"scheduler": "none"}),
    ],
)
def test_what_is_kept_is_read_again(state: SweepState) -> None:
    assert parse_state(state.to_text()) == state


def test_nothing_kept_is_the_beginning() -> None:
    assert parse_state(None) == SweepState()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"design": "a"}',
        '{"design": "a", "position": 5, "restore": null}',
        '{"design": "a", "position": {"began": "soon"}, "restore": null}',
        '{"design": "a", "position": {"colour": 1}, "restore": null}',
        '{"design": "a", "position": null, "restore": ["none"]}',
    ],
)
def test_a_damaged_state_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="damaged"):
        parse_state(text)
