"""Runs for tests of the site policy."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from reporters.config import Assignment, ResourceConfig
from reporters.remote.policy.rules import Situation

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)  # a Monday


def resource(name: str = "login", **changes: Any) -> ResourceConfig:
    return ResourceConfig(name, "here", **{"scratch": "/scratch/grid", **changes})


def ssh(**options: Any) -> ResourceConfig:
    """Return a resource with a shell of kind ssh."""
    return resource(shell={"kind": "ssh", "host": "login.example.org", **options})


def assignment(*resources: ResourceConfig, **changes: Any) -> Assignment:
    bound = resources or (resource(),)
    values = {
        "series": "disk-login",
        "slot": NOW,
        "reporter": "here",
        "probe": "disk",
        "bindings": {"target": [each.name for each in bound]},
        "resources": {each.name: each for each in bound},
        **changes,
    }
    return Assignment(**values)


def situation(**changes: Any) -> Situation:
    return Situation(**{"now": NOW, **changes})
