"""Example grid files that apply without changes; the folder is the registry."""

from __future__ import annotations

from pathlib import Path


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.yaml"))


def path(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.yaml")
