"""Modules that load when they are first used."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reporters.deferred import DeferredModule, defer, get_annotations

SOURCE = """
import itself_deferred
loads.append(__name__)
def answer(): return number
number = 42
del itself_deferred.loads
"""


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Any]:
    """A deferred module, as a first import returns it; *loads* of it has its loads."""
    (tmp_path / "itself_deferred.py").write_text(SOURCE)
    sys.path.insert(0, str(tmp_path))
    importlib.invalidate_caches()
    try:
        defer(["itself_deferred", "sys", "no_such_module_anywhere"])
        yield importlib.import_module("itself_deferred")
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("itself_deferred", None)


def test_a_module_loads_once_when_its_first_attribute_is_used(module: Any) -> None:
    loads: list[str] = []
    module.loads = loads
    assert importlib.import_module("itself_deferred") is module
    assert loads == []
    assert module.answer() == 42
    assert module.answer() == 42
    assert loads == ["itself_deferred"]
    assert type(module) is ModuleType


def test_an_attribute_that_the_module_lacks_is_an_error(module: Any) -> None:
    module.loads = []
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018
    assert module.number == 42


def test_threads_that_use_a_module_at_the_same_time_all_find_it_whole(module: Any) -> None:
    loads: list[str] = []
    module.loads = loads
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(lambda _: module.answer(), range(64))] == [42] * 64
    assert loads == ["itself_deferred"]


def test_modules_that_are_loaded_or_missing_stay_so(module: Any) -> None:
    assert isinstance(module, DeferredModule)
    assert not isinstance(sys, DeferredModule)
    assert "no_such_module_anywhere" not in sys.modules


def test_a_function_that_was_given_loads_nothing_until_the_module_brings_its_own(
    module: Any, tmp_path: Path
) -> None:
    (tmp_path / "with_function.py").write_text("def answer(): return 'the real one'")
    importlib.invalidate_caches()
    defer(["with_function"], answer=lambda: "a stand-in")
    try:
        deferred: Any = importlib.import_module("with_function")
        assert deferred.answer() == "a stand-in"
        assert isinstance(deferred, DeferredModule)
        assert not hasattr(deferred, "loads it")
        assert deferred.answer() == "the real one"
    finally:
        del sys.modules["with_function"]


class Base:
    x: int


class Derived(Base):
    pass


def annotated(x: int) -> str:
    return str(x)


@pytest.mark.parametrize("subject", [Base, Derived, int, annotated, sys])
def test_annotations_are_those_of_inspect(subject: Any) -> None:
    assert get_annotations(subject) == inspect.get_annotations(subject)
    if subject is not sys:
        assert get_annotations(subject, eval_str=True) == inspect.get_annotations(subject, eval_str=True)
