"""A state that was kept by other classes than today's is told from one of today's."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from typing import ClassVar, NamedTuple

import pytest

from forecasting import state
from forecasting.base import OutdatedState
from forecasting.series import Forecaster
from forecasting.state import MethodsByName
from forecasting.uncertainty.success import SuccessForecaster


class Pair(NamedTuple):
    left: float
    right: float


@dataclass
class Inner:
    value: float = 0.0


@dataclass
class Whole:
    inner: dict[str, list[Inner]] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)


def changed(kind: type, **changes: type) -> type:
    """As *kind*, with these fields."""
    return make_dataclass(kind.__qualname__, list({**kind.__annotations__, **changes}.items()))


def test_what_is_kept_is_found_again() -> None:
    whole = Whole({"a": [Inner(1.0)]}, [Pair(1.0, 2.0)])
    assert state.load(Whole, state.dump(whole)) == whole


def test_whatever_is_kept_changes_the_fingerprint_when_its_version_rises() -> None:
    @dataclass
    class Raised:
        VERSION: ClassVar[int] = 2
        value: float = 0.0

    Raised.__qualname__ = Inner.__qualname__
    before = changed(Whole, inner=dict[str, list[Inner]], pairs=list[Pair])
    after = changed(Whole, inner=dict[str, list[Raised]], pairs=list[Pair])
    assert state.fingerprint(before) == state.fingerprint(Whole)
    assert state.fingerprint(after) != state.fingerprint(Whole)


def test_another_field_changes_it_however_deep_it_is() -> None:
    more = changed(Inner, value=float, other=float)
    whole = changed(Whole, inner=dict[str, list[more]], pairs=list[Pair])  # type: ignore[valid-type]
    assert state.fingerprint(whole) != state.fingerprint(Whole)
    with pytest.raises(OutdatedState, match="other"):
        state.load(whole, state.dump(Whole()))


def test_what_keeps_methods_depends_on_which_there_are_and_nothing_else_does() -> None:
    @dataclass
    class Keeps:
        methods: MethodsByName = field(default_factory=MethodsByName)

    kept: dict[str, object] = {}
    state._describe(Keeps, kept)
    assert {"method auto", "method blend", "method ets"} < kept.keys()
    alone: dict[str, object] = {}
    state._describe(SuccessForecaster, alone)
    assert alone.keys() == {"SuccessForecaster", "Tally", "Moment"}
    assert state.fingerprint(SuccessForecaster) != state.fingerprint(Forecaster)
