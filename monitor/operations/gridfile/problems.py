"""Describe the places of a grid file in its errors."""

from __future__ import annotations

from monitor.core.yamlfile.problems import Path, describe_key, quoted

NOUNS = {
    "sites": "site",
    "resources": "resource",
    "reporters": "reporter",
    "suites": "suite",
    "series": "series",
    "maintenance": "maintenance",
    "alerts": "alert rule",
    "availability_profiles": "availability profile",
    "signatures": "signature",
    "webhooks": "webhook",
}


def describe_path(path: Path) -> str:
    """Return *path* as text: ``series main, key "bindings.sources[0]"``."""
    if len(path) >= 2 and path[0] in NOUNS:
        name = str(path[1])
        noun = f"{NOUNS[str(path[0])]} {name if name and name.isprintable() else quoted(name)}"
        return f"{noun}, {describe_key(path[2:])}" if len(path) > 2 else noun
    return describe_key(path) if path else ""
