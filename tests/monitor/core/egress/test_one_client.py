"""All HTTP that goes out is sent by one client: each other one would have bounds of its own, or none."""

from __future__ import annotations

import ast
from pathlib import Path

MONITOR = Path(__file__).resolve().parents[4] / "monitor"
CLIENTS = {"aiohttp", "ftplib", "http.client", "httpx", "requests", "urllib.request", "urllib3"}
# Modules that ask no other host, or whose requests the client sends.
OTHERS = {
    "operations/serving/services.py": "asks our own web server whether it is ready",
    "analysis/traces/export.py": "has the exporter's session, whose requests the client sends",
    "analysis/traces/session.py": "is the adapter by which the client sends them",
}


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def is_client(name: str) -> bool:
    return any(name == client or name.startswith(f"{client}.") for client in CLIENTS)


def test_no_other_room_sends_http() -> None:
    users = {
        str(file.relative_to(MONITOR))
        for file in MONITOR.rglob("*.py")
        if not {"egress", "testbed"} & set(file.relative_to(MONITOR).parts[:2])
        and any(map(is_client, imported(file)))
    }
    assert users == set(OTHERS)
