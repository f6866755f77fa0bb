"""A kept state loads as long as the methods that it uses are unchanged, and is refused otherwise."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import pytest

from forecasting import methods, state
from forecasting.base import OutdatedState
from forecasting.methods import blend
from forecasting.series import Forecaster, Observation
from forecasting.state import MethodsByName
from forecasting.uncertainty.success import SuccessForecaster

HOUR_SECONDS = 3600.0
VALUES = [random.Random(seed).lognormvariate(3.0, 0.4) for seed in range(160)]
# An expert that is right about every value: of VALUES it forecasts the one that happens at the time.
NEWCOMER = f"""
from dataclasses import dataclass, field
from typing import ClassVar

from forecasting.base import DataAge, ForecastMethod, ValueForecast

VALUES = {VALUES}


@dataclass(slots=True)
class Method(ForecastMethod):
    VERSION: ClassVar[int] = 1
    EXPERT: ClassVar[bool] = True
    age: DataAge = field(default_factory=DataAge, init=False)

    def update(self, time_seconds: float, value: float) -> None:
        self.age.add(time_seconds, value)

    def forecast(self, at_seconds: float) -> ValueForecast:
        self.age.require(1)
        return self.age.forecast(VALUES[round(at_seconds / 3600.0)], "newcomer", at_seconds)
"""


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
    """Return a class of the same name as *kind*, with these fields changed."""
    other = make_dataclass(kind.__qualname__, list({**kind.__annotations__, **changes}.items()))
    other.__module__ = kind.__module__
    return other


def observe(forecaster: Forecaster, first: int, last: int) -> None:
    """Hand *forecaster* the values from *first* to *last*, exclusive, and let it use them."""
    for index in range(first, last):
        at_seconds = index * HOUR_SECONDS
        forecaster.observe(Observation(at_seconds, at_seconds + 60.0, VALUES[index]))
    forecaster.learn_until(last * HOUR_SECONDS - 60.0)


def learned(name: str, count: int) -> Forecaster:
    forecaster = Forecaster(name)
    observe(forecaster, 0, count)
    return forecaster


@pytest.fixture
def add_newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Add the file of the expert ``newcomer`` to the folder of methods; it is gone after the test."""

    def add() -> None:
        (tmp_path / "newcomer.py").write_text(NEWCOMER)
        monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
        blend.expert_names.cache_clear()
        state._fingerprints.clear()

    yield add
    monkeypatch.undo()
    methods.load.cache_clear()
    blend.expert_names.cache_clear()
    sys.modules.pop("forecasting.methods.newcomer", None)
    if hasattr(methods, "newcomer"):
        del methods.newcomer


@pytest.fixture
def raise_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Raise ``VERSION`` of a method, by its name, until the test ends."""

    def raise_it(name: str) -> None:
        monkeypatch.setattr(methods.load(name), "VERSION", 99)
        state._fingerprints.clear()

    yield raise_it
    monkeypatch.undo()
    state._fingerprints.clear()


def test_a_state_loads_as_what_was_dumped() -> None:
    whole = Whole({"a": [Inner(1.0)]}, [Pair(1.0, 2.0)])
    assert state.load(Whole, state.dump(whole)) == whole


def test_a_raised_version_of_any_contained_class_changes_the_fingerprint() -> None:
    @dataclass
    class Raised:
        VERSION: ClassVar[int] = 2
        value: float = 0.0

    Raised.__qualname__ = Inner.__qualname__
    before = changed(Whole, inner=dict[str, list[Inner]], pairs=list[Pair])
    after = changed(Whole, inner=dict[str, list[Raised]], pairs=list[Pair])
    assert state.fingerprint(before) == state.fingerprint(Whole)
    assert state.fingerprint(after) != state.fingerprint(Whole)


def test_another_field_changes_the_fingerprint_however_deep_it_is() -> None:
    more = changed(Inner, value=float, other=float)
    whole = changed(Whole, inner=dict[str, list[more]], pairs=list[Pair])  # type: ignore[valid-type]
    assert state.fingerprint(whole) != state.fingerprint(Whole)
    with pytest.raises(OutdatedState, match="other"):
        state.load(whole, state.dump(Whole()))


def test_a_class_depends_on_what_it_always_contains_and_not_on_methods_by_name() -> None:
    @dataclass
    class Keeps:
        methods: MethodsByName = field(default_factory=MethodsByName)

    description: dict[str, object] = {}
    state._describe(Keeps, description)
    assert description.keys() == {f"{__name__}.{Keeps.__qualname__}"}
    description.clear()
    state._describe(SuccessForecaster, description)
    assert {name.rpartition(".")[2] for name in description} == {
        "SuccessForecaster",
        "SuccessTally",
        "Moment",
    }
    assert state.fingerprint(SuccessForecaster) != state.fingerprint(Forecaster)


def test_methods_of_one_class_name_are_told_apart() -> None:
    description: dict[str, object] = {}
    state._describe(methods.load("auto"), description)
    method_names = {name.split(".")[-2] for name in description if name.endswith(".Method")}
    assert method_names == {"auto", "blend", "lrp_robust"}


@pytest.mark.parametrize("name", ["nws", "blend", "auto"])
def test_an_added_method_leaves_the_versions_of_existing_states_as_they_are(
    name: str, add_newcomer: Callable[[], None]
) -> None:
    forecaster = learned(name, 30)
    versions, kept = forecaster.versions(), forecaster.dump()
    add_newcomer()
    assert "newcomer" in methods.names()
    assert forecaster.versions() == versions
    assert forecaster.dump() == kept
    assert state.is_current(Forecaster, versions)
    assert Forecaster.load(kept).used == 30


@pytest.mark.parametrize("name", ["blend", "auto"])
def test_a_new_expert_joins_a_kept_blend_with_the_next_value(
    name: str, add_newcomer: Callable[[], None]
) -> None:
    before = learned(name, 60)
    kept = before.dump()
    add_newcomer()
    joined = Forecaster.load(kept)
    at_seconds = 60 * HOUR_SECONDS
    assert list(joined.method.parts())[-1] == "newcomer"
    assert "newcomer" not in joined.part_medians(at_seconds)
    assert joined.forecast(at_seconds) == before.forecast(at_seconds)  # it has no weight yet
    assert joined.versions() != before.versions()
    assert state.is_current(Forecaster, joined.versions())
    observe(joined, 60, 61)
    newcomer = joined.method.parts()["newcomer"]
    assert newcomer.forecast(61 * HOUR_SECONDS).n == 1
    assert joined.part_medians(61 * HOUR_SECONDS)["newcomer"] == VALUES[61]


def test_a_new_expert_gains_weight_by_being_right(add_newcomer: Callable[[], None]) -> None:
    kept = learned("blend", 60).dump()
    add_newcomer()
    joined = Forecaster.load(kept)
    observe(joined, 60, 70)
    joined = Forecaster.load(joined.dump())
    observe(joined, 70, 100)
    assert joined.forecast(100 * HOUR_SECONDS).median == pytest.approx(VALUES[100], rel=0.05)
    steady = learned("blend", 100)
    assert list(steady.method.parts()) == list(blend.expert_names())
    assert state.is_current(Forecaster, steady.versions())


def test_a_new_expert_joins_a_blend_that_has_learned_nothing(add_newcomer: Callable[[], None]) -> None:
    state = Forecaster("blend").dump()
    add_newcomer()
    joined = Forecaster.load(state)
    observe(joined, 0, 20)
    assert joined.forecast(20 * HOUR_SECONDS).n == 20


@pytest.mark.parametrize("changed_method", ["analog", "blend", "lrp_robust"])
def test_a_raised_version_of_a_method_outdates_only_the_states_that_use_it(
    changed_method: str, raise_version: Callable[[str], None]
) -> None:
    using, other = learned("auto", 20), learned("ets", 10)
    versions, kept, other_versions = using.versions(), using.dump(), other.versions()
    raise_version(changed_method)
    assert state.is_current(Forecaster, other_versions)
    assert Forecaster.load(other.dump()).used == 10
    assert not state.is_current(Forecaster, versions)
    with pytest.raises(OutdatedState, match="another version"):
        Forecaster.load(kept)


def test_a_state_that_uses_a_removed_method_is_outdated(add_newcomer: Callable[[], None]) -> None:
    add_newcomer()
    newcomer = learned("newcomer", 10)
    versions, kept = newcomer.versions(), newcomer.dump()
    assert state.is_current(Forecaster, versions)
    del sys.modules["forecasting.methods.newcomer"]
    methods.__path__.pop()
    methods.load.cache_clear()
    assert not state.is_current(Forecaster, versions)
    with pytest.raises(OutdatedState, match="newcomer"):
        Forecaster.load(kept)


def test_the_versions_of_another_class_or_of_nothing_are_not_current() -> None:
    assert not state.is_current(Forecaster, state.versions(SuccessForecaster))
    assert not state.is_current(Forecaster, b"another!")
    assert not state.is_current(Forecaster, b"")
