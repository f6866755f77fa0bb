"""docs/architecture.md: its diagrams are drawn from the code, and each step of a flow names what exists.

``GRIDCAST_ACCEPT_ARCHITECTURE=1`` writes the diagrams as they are drawn now.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import ForeignKey

from tests.test_house import ROOT, WINGS, defined, rooms_graph, tree

PAGE = ROOT / "docs" / "architecture.md"
DECISIONS = ROOT / "docs" / "decisions"
DRAWN_WINGS = ("testbed", *(wing for wing in WINGS if wing != "core"), "models")  # ``core`` serves all


def wing_of(room: str) -> str:
    return room.partition("/")[0]


def title_of(wing: str) -> str:
    docstring = ast.get_docstring(tree(ROOT / "monitor" / wing / "__init__.py")) or ""
    return docstring.partition("\n")[0].removeprefix("The wing of ").partition(":")[0].rstrip(".")


def draw_rooms() -> str:
    """Return a Mermaid flowchart of the rooms by wing, without the arrows that follow from others."""
    graph = {
        room: {other for other in others if wing_of(other) in DRAWN_WINGS}
        for room, others in rooms_graph().items()
        if wing_of(room) in DRAWN_WINGS
    }
    lines = ["flowchart TB"]
    for wing in DRAWN_WINGS:
        if wing not in WINGS:
            lines.append(f"  {wing}")
            continue
        rooms = sorted(room for room in {*graph, *rooms_of(wing)} if wing_of(room) == wing)
        lines.append(f'  subgraph {wing}["{wing}: {title_of(wing)}"]')
        lines += [f"    {identifier(room)}[{room.partition('/')[2]}]" for room in rooms]
        lines.append("  end")
    for room in sorted(graph):
        reached = set().union(*(reachable(graph, other) for other in graph[room]))
        lines += [f"  {identifier(room)} --> {identifier(other)}" for other in sorted(graph[room] - reached)]
    return mermaid(lines)


def rooms_of(wing: str) -> set[str]:
    """Return the folders of *wing*, also those that import nothing."""
    folders = (ROOT / "monitor" / wing).iterdir()
    return {f"{wing}/{folder.name}" for folder in folders if (folder / "__init__.py").exists()}


def reachable(graph: dict[str, set[str]], room: str) -> set[str]:
    return set(graph.get(room, ())).union(*(reachable(graph, other) for other in graph.get(room, ())))


def identifier(room: str) -> str:
    return room.replace("/", "_")


def draw_clocks() -> str:
    """Return a table of what Celery beat sends, the most frequent first."""
    clocks = [(each["schedule"], str(each["task"])) for each in settings.CELERY_BEAT_SCHEDULE.values()]
    rows = [
        f"| {every:g} s | `{task.rpartition('.')[2]}` | {body_of(task)} |" for every, task in sorted(clocks)
    ]
    return "\n".join(["| every | task | calls |", "|---|---|---|", *rows])


def body_of(task: str) -> str:
    """Return the functions that *task* calls, as paths of files."""
    file = ROOT / "monitor" / "tasks.py"
    (function,) = (
        each
        for each in tree(file).body
        if isinstance(each, ast.FunctionDef) and each.name == task.rpartition(".")[2]
    )
    places: dict[str, str] = {}
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.ImportFrom):
            places |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    calls = []
    for node in (each for statement in function.body for each in ast.walk(statement)):
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)).split(".")[0] in places:
            first, _, function_name = name.partition(".")
            place = places[first]
            path = f"{place}.{function_name}" if function_name else place
            if path.startswith("monitor."):
                module, _, called = path.rpartition(".")
                calls.append(f"`{module.replace('.', '/')}.py`: `{called}`")
    return ", ".join(calls)


def draw_models() -> str:
    """Return a Mermaid diagram of the models and of the rows that theirs belong to."""
    lines = ["erDiagram"]
    for model in sorted(apps.get_app_config("monitor").get_models(), key=lambda each: each.__name__):
        fields = [field for field in model._meta.get_fields() if isinstance(field, ForeignKey)]
        for field in sorted(fields, key=lambda each: each.name):
            line = "--" if field.deconstruct()[3].get("db_constraint", True) else ".."
            many = "o|" if field.unique else "o{"
            one = "|o" if field.null else "||"
            other = field.related_model.__name__
            lines.append(f"  {other} {one}{line}{many} {model.__name__} : {field.name}")
        if not fields:
            lines.append(f"  {model.__name__}")
    return mermaid(lines)


def mermaid(lines: list[str]) -> str:
    return "\n".join(["```mermaid", *lines, "```"])


@pytest.mark.parametrize(
    ("name", "draw"), [("rooms", draw_rooms), ("clocks", draw_clocks), ("models", draw_models)]
)
def test_what_the_page_shows_is_drawn_from_the_code(name: str, draw: Callable[[], str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
    before, _, rest = text.partition(begin)
    shown, _, after = rest.partition(end)
    drawn = f"{draw()}\n"
    if os.environ.get("GRIDCAST_ACCEPT_ARCHITECTURE"):
        PAGE.write_text(f"{before}{begin}{drawn}{end}{after}", encoding="utf-8")
    else:
        assert shown == drawn, "write it anew: GRIDCAST_ACCEPT_ARCHITECTURE=1"


def test_each_step_of_a_flow_names_a_file_and_what_it_defines() -> None:
    steps = re.findall(r"`([\w./]+\.py)`:\s+`(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(steps) > 30, "the page names no steps"
    for path, name in steps:
        assert name in defined(path), f"{path} does not define {name}"


def test_every_wing_says_in_ten_lines_what_is_in_it_and_where_to_begin() -> None:
    for wing in WINGS:
        text = ast.get_docstring(tree(ROOT / "monitor" / wing / "__init__.py")) or ""
        assert 6 <= len(text.splitlines()) <= 14, wing
        assert "Begin at" in text, wing
        for path in re.findall(r"``([\w/]+\.py)``", text):
            assert (ROOT / "monitor" / wing / path).exists(), f"{wing} names a file that it lacks: {path}"
        rooms = {room.partition("/")[2] for room in rooms_of(wing)}
        assert rooms <= set(re.findall(r"``(\w+)``", text)), f"{wing} does not name all its rooms"


def test_every_decision_says_what_would_change_our_mind() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    pages = sorted(page for page in DECISIONS.glob("*.md") if page.name != "README.md")
    assert len(pages) >= 8, "the decisions are gone"
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"]({page.name})" in index, f"the index does not list {page.name}"
        for heading in ("## Decision", "## Why", "## What would change our mind"):
            assert heading in text, f"{page.name} lacks {heading}"
