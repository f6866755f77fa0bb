"""The input of a reporter: resources with their access methods, and one run. Plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ResourceConfig:
    """One reachable host of a site.

    *shell*, *transfer* and *batch* each hold a ``kind`` (a module of the package of that name) and the
    options of that kind, e.g. ``{"kind": "ssh", "host": "login.example.org", "config_file": "..."}``.
    *scratch* is an absolute directory at the resource in which runs create directories. *address* is the host
    name or IP address under which other sites reach the resource, for probes of the network.
    """

    name: str
    site: str
    scratch: str
    shell: Mapping[str, Any] = field(default_factory=lambda: {"kind": "local"})
    transfer: Mapping[str, Any] = field(default_factory=lambda: {"kind": "local"})
    batch: Mapping[str, Any] = field(default_factory=lambda: {"kind": "fork"})
    address: str = ""


@dataclass(frozen=True)
class Assignment:
    """One run. *limit_seconds* bounds everything but the cleanup, which has *cleanup_seconds* of its own.

    *expected_seconds* are upper bounds of forecasts by metric, such as ``total.seconds``. With *max_load1*
    the run is skipped if the one-minute load of any of its resources is higher. The probe first runs
    *warm_up_runs* times, each with the same limits; the values of warm-ups are discarded.
    """

    series: str
    slot: datetime
    reporter: str
    probe: str
    bindings: Mapping[str, Sequence[str]]  # role -> resource names, in order
    resources: Mapping[str, ResourceConfig]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    limit_seconds: float = 1800.0
    cleanup_seconds: float = 60.0
    expected_seconds: Mapping[str, float] = field(default_factory=dict)
    max_load1: float | None = None
    warm_up_runs: int = 0
