"""The dashboards are what the generator writes, and what Grafana's schema allows."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import prometheus, stat, timeseries

from integrations.grafana.generate import DASHBOARDS, FOLDER, generate, queries

OPTIONS: dict[str, Any] = {"timeseries": timeseries.Options, "stat": stat.Options}
every_dashboard = pytest.mark.parametrize("name", sorted(DASHBOARDS))


def faults(model: Any, content: dict[str, Any], where: str) -> Iterator[str]:
    """Yield where *content* differs from the class *model* of Grafana's schema: fields, types, enums."""
    hints = {plain(name): hint for name, hint in typing.get_type_hints(model).items()}
    for name, value in content.items():
        if plain(name) in hints:
            yield from type_faults(hints[plain(name)], value, f"{where}.{name}")
        else:
            yield f"{where}.{name}: unknown field"


def plain(name: str) -> str:
    """Return a name of a field or of an attribute in the form that both have in common."""
    return name.removesuffix("_val").replace("_", "").lower()


def type_faults(hint: Any, value: Any, where: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        fitting = [one for one in arguments if (one is types.NoneType) == (value is None)]
        yield from min((list(type_faults(one, value, where)) for one in fitting), key=len)
    elif origin is list and isinstance(value, list):
        for number, item in enumerate(value):
            yield from type_faults(arguments[0], item, f"{where}[{number}]")
    elif hint is Dataquery:  # of the panel's data source
        yield from type_faults(prometheus.Dataquery, value, where)
    elif hasattr(hint, "from_json") and isinstance(value, dict):
        yield from faults(hint, value, where)
    elif not is_plain_value(hint, value):
        yield f"{where}: expected {hint}, got {value!r}"


def is_plain_value(hint: Any, value: Any) -> bool:
    """Return whether *value* is a text, a number, null or the like, as *hint* says."""
    if typing.get_origin(hint) is typing.Literal:
        return value in typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return value in {each.value for each in hint}
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint) if isinstance(hint, type) else hint is Any


@every_dashboard
def test_the_committed_file_is_what_the_generator_writes(name: str) -> None:
    assert (FOLDER / f"{name}.json").read_text(encoding="utf-8") == generate(name), (
        "run python -m integrations.grafana.generate"
    )


@every_dashboard
def test_the_dashboard_obeys_grafanas_schema(name: str) -> None:
    content = json.loads(generate(name))
    assert list(faults(models.Dashboard, content, name)) == []
    for panel in content["panels"]:
        assert list(faults(OPTIONS[panel["type"]], panel["options"], panel["title"])) == []


@pytest.mark.parametrize(
    ("field", "value"), [("title", 3), ("refesh", "5s"), ("graphTooltip", 9), ("schemaVersion", "36")]
)
def test_the_schema_check_finds_a_fault(field: str, value: Any) -> None:
    assert list(faults(models.Dashboard, {**json.loads(generate("grid")), field: value}, "grid"))


@every_dashboard
def test_panels_have_titles_of_their_own_and_do_not_overlap(name: str) -> None:
    panels = json.loads(generate(name))["panels"]
    assert len({panel["title"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    assert len(queries(name)) >= len(panels)
