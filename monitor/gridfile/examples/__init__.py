"""Grid files that can be applied as they are; the folder is the registry."""

from __future__ import annotations

from pathlib import Path


def names() -> list[str]:
    """What there is, sorted."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.yaml"))


def path(name: str) -> Path:
    """Where the example called *name* is."""
    return Path(__file__).with_name(f"{name}.yaml")
