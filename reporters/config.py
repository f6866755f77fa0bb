"""The input of a reporter as plain values: resources with their access methods, and one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class ResourceConfig:
    """One reachable host of a site.

    *shell*, *transfer* and *batch* each contain a ``kind`` and the options of this kind, such as ``{"kind":
    "ssh", "host": "login.example.org", "config_file": "..."}``. A kind is the name of a module in the package
    that the list below names.

    Attributes:
        scratch: absolute path of the directory at the resource in which runs create their directories.
        shell: how to run programs at the resource, a kind of ``reporters.shells``.
        transfer: how to copy files, a kind of ``reporters.transfers``.
        batch: how to submit jobs, a kind of ``reporters.batch``.
        address: host name or IP address by which other sites reach the resource; probes of the network use
            it.
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

    Attributes:
        limit_seconds: time limit of the run.
        cleanup_seconds: additional time limit of the cleanup after the run.
        expected_seconds: upper bound of the forecast, in seconds, by metric (such as ``total.seconds``).
        max_load1: the run is skipped if the one-minute load average of one of its resources is above this
            number; None: no limit.
        warm_up_runs: number of runs of the probe before the run, with the same limits; their values are
            discarded.
        state_directory: where the reporter keeps what series remember between their runs; empty: nowhere.
        max_file_bytes: largest file that a program of the run may write at the reporter's own host; None: no
            limit.
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
    state_directory: str = ""
    max_file_bytes: int | None = None
