"""What the weather is at one moment: how slow every mechanism of a grid is, and what is broken."""

from __future__ import annotations

from dataclasses import dataclass, field

# What a site does for a probe, and the stage of Gather that shows it.
MECHANISMS = {
    "login": "init",
    "disk": "stage_data",
    "compile": "build_executable",
    "inbound": "transfer_data",
    "queue": "queue_wait",
    "compute": "compute",
    "outbound": "transfer_results",
    "unlink": "cleanup",
}

# Every way in which a mechanism can fail. "login", "disk", "inbound" and "unlink" hit every probe (Circle
# too); "compile", "queue", "compute" and "outbound" only those that compute (Gather, PreCo).
FAULT_KINDS = {
    "login": ("refused", "hang", "denied"),  # connection refused; accepts and says nothing; permission denied
    "disk": ("full", "unwritable"),
    "inbound": ("reset", "stall", "corrupt"),  # cut in mid-transfer; no more bytes; a flipped byte
    "unlink": ("busy",),
    "compile": ("missing", "crash"),  # cc: command not found; internal compiler error
    "queue": ("rejected", "stuck"),  # batch system refuses the job; never starts it
    "compute": ("killed", "exit"),  # killed by a signal; non-zero exit status
    "outbound": ("reset", "stall"),
}


@dataclass(frozen=True)
class SiteFault:
    """One thing that is broken. *site* is the index of the site, 0..sites-1."""

    site: int
    mechanism: str
    kind: str


@dataclass(frozen=True)
class Conditions:
    """The weather at one moment, in grid seconds (before the time scale of a test-bed is applied).

    ``seconds[mechanism]`` is how long the mechanism takes for a reference run of Gather: 100 MB from each
    source, 500 MB of results. ``slowest_site[mechanism]`` is the site that takes that long for the mechanisms
    in which several sites take part at once; the others take ``others_fraction`` of it.
    """

    index: int
    seconds: dict[str, float]
    slowest_site: dict[str, int]
    others_fraction: float
    fault: SiteFault | None = None
    application_seconds: dict[str, float] = field(default_factory=dict)  # the same for PreCo
