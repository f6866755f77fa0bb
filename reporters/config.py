"""The input of a reporter as plain values: resources with their access methods, and one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ResourceConfig:
    """One reachable host of a site.

    *shell*, *transfer* and *batch* each hold a ``kind`` and the options of this kind, e.g. ``{"kind": "ssh",
    "host": "login.example.org", "config_file": "..."}``. A kind is a module of ``reporters.shells``,
    ``reporters.transfers`` or ``reporters.batch``. *scratch* is the absolute path of the directory at the
    resource in which runs create their directories. *address* is the host name or IP address by which other
    sites reach the resource; probes of the network use it.
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
    """One run of *probe*: the run of *series* for the scheduled time *slot*.

    The run must end within *limit_seconds*; after that the cleanup may take another *cleanup_seconds*.
    *expected_seconds* has, by metric (such as ``total.seconds``), the upper bound of the forecast, in
    seconds. The run is skipped if the one-minute load average of one of its resources is above *max_load1*
    (None: no limit). Before the run, the probe runs *warm_up_runs* times with the same limits; the
    values of these warm-ups are discarded.
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
