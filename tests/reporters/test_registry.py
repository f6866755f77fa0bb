"""The registry of a folder of plug-ins, on a package made for each test."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reporters.registry import PluginRegistry, UnknownPlugin

numbers = itertools.count()


class NoSuchColour(Exception):
    pass


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PluginRegistry[str]]:
    """Return a function that makes the registry of a package with ``red``, ``blue`` and ``base``."""
    name = f"colours_{next(numbers)}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "base.py").write_text("raise AssertionError('imported')\n")
    for colour in ("red", "blue"):
        (folder / f"{colour}.py").write_text(f"COLOUR = {colour!r}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module(name)

    def make(**options: Any) -> PluginRegistry[str]:
        return PluginRegistry[str](
            name, package.__path__, "COLOUR", noun="colour", shared={"base"}, **options
        )

    return make


def test_plugins_are_listed_by_name_without_an_import(registry: Callable[..., PluginRegistry[str]]) -> None:
    before = set(sys.modules)
    assert registry().names() == ["blue", "red"]
    assert set(sys.modules) == before


def test_a_plugin_is_loaded_by_name(registry: Callable[..., PluginRegistry[str]]) -> None:
    assert registry().load("red") == "red"
    assert registry().load_all() == {"blue": "blue", "red": "red"}


@pytest.mark.parametrize("name", ["green", "base", "..os", "", "red.x"])
def test_a_name_outside_the_folder_is_refused_before_any_import(
    registry: Callable[..., PluginRegistry[str]], name: str
) -> None:
    before = set(sys.modules)
    with pytest.raises(UnknownPlugin) as refusal:
        registry().load(name)
    assert str(refusal.value) == f"there is no colour {name!r}; known are blue, red"
    assert set(sys.modules) == before


def test_a_registry_may_have_an_error_of_its_own(registry: Callable[..., PluginRegistry[str]]) -> None:
    with pytest.raises(NoSuchColour, match="there is no colour 'green'"):
        registry(error=NoSuchColour).load("green")
